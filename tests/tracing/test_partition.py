"""Where regions begin and end."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is optional")

from ilang_eq import trace  # noqa: E402
from ilang_eq.errors import ArrayError, TraceError  # noqa: E402
from tests.tracing.interpreting import agrees, assert_close, interpreted  # noqa: E402

F = torch.nn.functional


class Block(torch.nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)])
        self.attend = torch.nn.ModuleList([torch.nn.Linear(width, width) for _ in range(4)])
        self.grow, self.shrink = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        y = self.norms[0](x)
        q, k, v = (layer(y).view(batch, length, 2, width // 2).transpose(1, 2) for layer in self.attend[:3])
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        x = x + self.attend[3](found)
        return x + self.shrink(F.gelu(self.grow(self.norms[1](x))))


def test_equal_layers_fall_into_equal_regions() -> None:
    layers = torch.nn.Sequential(*(Block() for _ in range(3))).eval()
    traced = agrees(layers, torch.randn(2, 5, 8), regions=None)
    assert len(traced.regions) % 3 == 0
    per_layer = len(traced.regions) // 3
    assert len(traced.problems) <= per_layer - 2, "the three projections are one problem"
    assert all(count % 3 == 0 for count in traced.problems.values())


def test_merged_heads_are_stored_merged() -> None:
    traced = interpreted(Block().eval(), torch.randn(2, 5, 8))
    (core,) = [r for r in traced.regions if any("attention" in name for name in r.members)]
    assert [str(extent) for extent in core.output_extents] == ["2", "5", "2", "4"]
    assert core.type.shape == (2, 5, 8)


def test_a_bias_an_activation_and_a_residual_are_in_the_products_region() -> None:
    def layer(x: Any, w: Any, b: Any, r: Any) -> Any:
        return F.relu(F.linear(x, w, b)) + r

    (region,) = agrees(layer, torch.randn(3, 4), torch.randn(5, 4), torch.randn(5), torch.randn(3, 5)).regions
    assert len(region.members) == 3


def test_a_value_read_twice_stays_inside_if_the_paths_meet() -> None:
    def gate(x: Any) -> Any:
        return x * torch.sigmoid(x + 0.04 * x**3)

    agrees(lambda x, w: gate(x @ w), torch.randn(3, 4), torch.randn(4, 5), regions=1)


def test_a_value_that_two_products_read_is_stored() -> None:
    def two(x: Any, w: Any) -> Any:
        y = x * 2
        return (y @ w) @ (y @ w).T + y @ y.T

    traced = agrees(two, torch.randn(3, 4), torch.randn(4, 4), regions=None)
    assert traced.regions[0].members == ("mul",)


def test_products_with_weights_that_are_joined_come_apart() -> None:
    gate, up = torch.nn.Linear(16, 32), torch.nn.Linear(16, 32)

    def gated(x: Any) -> Any:
        return F.silu(gate(x)) * up(x)

    traced = agrees(gated, torch.randn(4, 16), regions=2)
    assert [str(region.component).count("jk~ikj") for region in traced.regions] == [1, 1]
    agrees(lambda x: (y := gate(x)).sigmoid() * y, torch.randn(4, 16), regions=1)


def test_products_without_weights_stay_together() -> None:
    """However few the queries of each key are, and in however many heads."""

    def decode(q: Any, k: Any, v: Any) -> Any:
        return torch.softmax(torch.einsum("hgk,hjk->hgj", q, k) * 0.5, -1) @ v

    agrees(decode, torch.randn(2, 3, 4), torch.randn(2, 50, 4), torch.randn(2, 50, 4), regions=1)
    agrees(lambda a, x: a.T @ (a @ x), torch.randn(6, 5), torch.randn(5), regions=1)


def test_elementwise_work_takes_no_room_in_a_region() -> None:
    def gradient(x: Any, w: Any, g: Any) -> Any:
        centred = x - x.mean(-1, keepdim=True)
        scale = torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)
        normed, weighted = centred * scale, g * w
        slope = (weighted * normed).mean(-1, keepdim=True)
        return (weighted - weighted.mean(-1, keepdim=True) - normed * slope) * scale

    agrees(gradient, torch.randn(3, 5), torch.randn(5), torch.randn(3, 5), regions=1)


def test_a_returned_value_is_stored() -> None:
    traced = interpreted(lambda x: (x.exp(), x.exp().sum()), torch.randn(3))
    first = torch.randn(3)
    exp, total = traced(first)
    assert_close(exp, first.exp())
    assert_close(total, first.exp().sum())


def test_a_call_in_the_middle_stays_with_pytorch_and_no_region_spans_it() -> None:
    def rotate(x: Any) -> Any:
        y = x * 2
        half = torch.cat((-y[..., 2:], y[..., :2]), -1)
        return y * 3 + half * 4

    x = torch.randn(5, 4)
    traced = interpreted(rotate, x)
    assert_close(traced(x), rotate(x))
    assert {row.op for row in traced.coverage.rows} == {"aten.cat.default", "aten.slice.Tensor"}


def test_reshapes_that_have_no_common_axes_end_a_region() -> None:
    def awkward(x: Any) -> Any:
        return (x.reshape(4, 3) * 2).reshape(3, 4) + (x + 1)

    x = torch.randn(3, 4)
    traced = interpreted(awkward, x)
    assert_close(traced(x), awkward(x))
    assert len(traced.regions) > 1


def test_regions_of_rows_do_not_depend_on_how_many_dimensions_they_are_in() -> None:
    components = {
        str(interpreted(lambda x: x.softmax(-1), torch.randn(*shape, 6)).regions[0].component)
        for shape in ((4,), (2, 2), (1, 2, 1, 2))
    }
    assert len(components) == 1


def test_large_regions_are_cut_before_a_product() -> None:
    def deep(x: Any, *ws: Any) -> Any:
        for w in ws:
            x = F.relu(x @ w)
        return x

    traced = agrees(deep, torch.randn(3, 4), *(torch.randn(4, 4) for _ in range(16)), regions=None)
    assert 2 <= len(traced.regions) <= 8
    assert all("matmul" in region.members[0] for region in traced.regions)


def test_constants_are_computed_once() -> None:
    calls: list[int] = []

    def run(x: Any) -> Any:
        return x + torch.arange(4).float()

    traced = interpreted(run, torch.randn(4))
    original = traced.runner._folding[0].run
    object.__setattr__(traced.runner._folding[0], "run", lambda values: (calls.append(1), original(values))[1])
    for _ in range(3):
        x = torch.randn(4)
        assert_close(traced(x), run(x))
    assert len(calls) == 1


def test_weights_are_transposed_ahead_of_products() -> None:
    layer = torch.nn.Linear(3, 2)
    for run in (layer, lambda x: torch.mm(x, layer.weight.t()) + layer.bias):
        traced = interpreted(run, torch.randn(4, 3))
        assert "ij*jk" in str(traced.regions[0].component)
        assert not traced.coverage.rows
        x = torch.randn(4, 3)
        assert_close(traced(x), layer(x).detach())


class Cut(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.bare = torch.nn.Linear(3, 12), torch.nn.Linear(3, 12, bias=False)
        self.weight, self.bias = torch.nn.Parameter(torch.randn(3, 12)), torch.nn.Parameter(torch.randn(12))

    def forward(self, x: Any) -> Any:
        added = torch.addmm(self.bias, x.view(-1, 3), self.weight).view(2, 4, 12)
        products = self.layer(x), self.bare(x), added, x @ self.weight
        return [part * 2 for whole in products for part in whole.split((5, 3, 4), -1)]


def test_a_product_that_is_cut_is_computed_in_parts() -> None:
    model, x = Cut(), torch.randn(2, 4, 3)
    traced = interpreted(model, x)
    assert not traced.coverage.rows
    with torch.no_grad():
        assert_close(traced(x), model(x))
        for parameter in model.parameters():
            parameter.mul_(2)
        assert_close(traced(x), model(x))


def test_a_product_that_is_read_whole_is_not_cut() -> None:
    layer = torch.nn.Linear(3, 4)

    def both(x: Any) -> Any:
        whole = layer(x)
        first, second = whole.split(2, -1)
        rows = layer(x + 1).split(2, 0)
        return first * second, whole, rows[0] * rows[1]

    x = torch.randn(4, 3)
    traced = interpreted(both, x)
    assert {row.op for row in traced.coverage.rows} == {"aten.split_with_sizes.default", "getitem"}
    assert_close(traced(x), both(x))


def test_noise_is_drawn_at_every_call() -> None:
    traced = interpreted(lambda x: x + torch.rand(4), torch.randn(4))
    x = torch.zeros(4)
    assert not torch.equal(traced(x), traced(x))


def test_parameters_may_change_between_calls() -> None:
    layer = torch.nn.Linear(3, 2)
    traced, x = interpreted(layer, torch.randn(4, 3)), torch.randn(4, 3)
    with torch.no_grad():
        assert_close(traced(x), layer(x))
        layer.weight.mul_(2)
        assert_close(traced(x), layer(x))


def test_parameters_may_be_replaced_between_calls() -> None:
    layer, x = torch.nn.Linear(4, 4), torch.randn(3, 4)
    traced = interpreted(layer, x)
    for _ in range(3):
        layer.weight, layer.bias = (torch.nn.Parameter(torch.randn(n)) for n in ((4, 4), (4,)))
        assert_close(traced(x), layer(x).detach())
        layer.load_state_dict({name: value + 1 for name, value in layer.state_dict().items()}, assign=True)
        assert_close(traced(x), layer(x).detach())
    layer.weight.data.mul_(2)
    assert_close(traced.refresh()(x), layer(x).detach())
    layer.weight = torch.nn.Parameter(torch.randn(5, 4))
    with pytest.raises(ArrayError, match=r"weight is torch.float32 of \(5, 4\) now"):
        traced(x)


def test_memory_that_a_former_parameter_left_is_another_parameter() -> None:
    """Not two tensors that follow each other at one address, told apart by nothing."""
    layer, x = torch.nn.Linear(64, 64, bias=False), torch.randn(3, 64)
    traced = interpreted(layer, x)
    for _ in range(4):
        for _ in range(2):
            layer.weight.data = torch.zeros(0)
            layer.weight.data = torch.randn(64, 64)
        assert_close(traced(x), layer(x).detach(), rtol=1e-4, atol=1e-4)


def test_the_first_call_may_be_in_inference_mode() -> None:
    layer, x = torch.nn.Linear(4, 5), torch.randn(3, 4)
    traced = interpreted(layer, x)
    for mode in (True, False, True):
        with torch.inference_mode(mode), torch.no_grad():
            assert_close(traced(x), layer(x))


def test_strict_takes_what_is_computed_once() -> None:
    def angles(x: Any) -> Any:
        return x * torch.linspace(0, 1, 6).cos()

    traced = trace(angles, (torch.randn(2, 6),), strict=True)
    assert "computed once" in str(traced.coverage)
    assert traced.coverage.fraction == 1


def test_strict_leaves_whole_numbers_to_pytorch() -> None:
    table = torch.nn.Embedding(4, 3)
    traced = trace(lambda n: table(n + 1) * 2, (torch.tensor([1, 2]),), strict=True)
    assert {(row.op, row.integers) for row in traced.coverage.rows} == {
        ("aten.embedding.default", True),
        ("aten.add.Tensor", True),
    }


def test_strict_names_what_stays_with_pytorch() -> None:
    with pytest.raises(TraceError, match=r"(?s)strict.*aten\.cumsum\.default.*not in the table"):
        trace(lambda x: x.cumsum(0) * 2, (torch.randn(3),), strict=True)
    assert not trace(lambda x: x * 2, (torch.randn(3),), strict=True).coverage.rows


def test_coverage_counts_operations_and_says_where() -> None:
    class Sums(torch.nn.Module):
        def forward(self, x: Any, w: Any) -> Any:
            return torch.cumsum(x @ w, 0)

    found = interpreted(Sums(), torch.randn(4, 5), torch.randn(5, 6)).coverage
    (row,) = found.rows
    assert (row.op, row.operations, found.covered) == ("aten.cumsum.default", 24, 2 * 4 * 5 * 6)
    assert row.line.split(":")[0] == __file__
    assert "90.91% of 264" in str(found)


def test_what_cannot_be_exported_is_refused() -> None:
    def branch(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    with pytest.raises(TraceError, match=r"torch\.export cannot trace branch"):
        trace(branch, (torch.randn(3),))


def test_a_model_that_changes_its_buffers_is_refused() -> None:
    with pytest.raises(TraceError, match="changes running_mean while it runs"):
        trace(torch.nn.BatchNorm1d(3).train(), (torch.randn(4, 3),))


def test_inputs_unlike_the_example_are_refused() -> None:
    traced = interpreted(lambda x, y: x + y, torch.randn(3), torch.randn(3))
    for args in ((torch.randn(3),), (torch.randn(3), torch.randn(4)), (torch.randn(3), torch.randn(3).double())):
        with pytest.raises(ArrayError):
            traced(*args)
