"""Tasks from Python and from files, and what is said of bad ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ilang_eq import ILangError, i
from ilang_eq.batch.tasks import Task, collected, read_tasks
from ilang_eq.errors import OptionError, ParseError, ShapeError

EXP = i("^ij~ij")
MATMUL = i("ik*kj~ijk") >> i("+ijk~ij")


class Model:
    """Like a traced model."""

    def tasks(self) -> Iterator[Task]:
        yield Task(EXP, ((2, 3),), 12)
        yield Task(MATMUL, ((2, 3), (3, 4)), constants=("in1",))


def test_everything_that_is_a_task(tmp_path: Path) -> None:
    text = tmp_path / "exp.i"
    text.write_text('# shapes: 4x5\ni("^ij~ij")\n')
    lines = tmp_path / "more.jsonl"
    lines.write_text('{"component": "i(\\"^i~i\\")", "shapes": [[7]], "weight": 2}\n\n')
    sources: list[Any] = [(EXP, [(8, 9)]), (EXP, [(8, 9)], 3), Task(EXP, ((1, 1),), 4.0), Model(), text, str(lines)]
    found = collected(sources)
    assert [(str(t.component), t.shapes, t.weight) for t in found] == [
        ('i("^ij~ij")', ((8, 9),), 1.0),
        ('i("^ij~ij")', ((8, 9),), 3.0),
        ('i("^ij~ij")', ((1, 1),), 4.0),
        ('i("^ij~ij")', ((2, 3),), 12.0),
        (str(MATMUL), ((2, 3), (3, 4)), 1.0),
        ('i("^ij~ij")', ((4, 5),), 1.0),
        ('i("^i~i")', ((7,),), 2.0),
    ]
    assert [t.constants for t in found][3:5] == [(), ("in1",)]
    assert [t.name for t in found][3:5] == ["task 3, region 0", "task 3, region 1"]


@pytest.mark.parametrize("source", [EXP, (EXP,), 7, ("i", [])])
def test_no_task(source: Any) -> None:
    with pytest.raises(OptionError, match="task 1 is a"):
        collected([(EXP, [(2, 2)]), source])


BAD_LINES: dict[str, tuple[type[ILangError], str]] = {
    "{": (OptionError, "is not JSON"),
    "[]": (OptionError, "is no task"),
    "{}": (OptionError, "is no task"),
    json.dumps({"component": "I", "shapes": [2]}): (OptionError, "is no task"),
    json.dumps({"component": "I", "shapes": [[2]], "color": 1}): (OptionError, "is no task"),
    json.dumps({"component": "I", "shapes": [[2]], "weight": "much"}): (OptionError, "is no task"),
    json.dumps({"component": "open('x')", "shapes": [[2]]}): (ParseError, "not component text"),
}


@pytest.mark.parametrize("line", BAD_LINES)
def test_a_bad_line_is_named(line: str, tmp_path: Path) -> None:
    kind, message = BAD_LINES[line]
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"component": "i(\\"^i~i\\")", "shapes": [[7]]}\n' + line + "\n")
    with pytest.raises(kind, match=f"tasks.jsonl, line 2.*{message}"):
        read_tasks(path)


def test_files_that_will_not_do(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"nowhere\.i cannot be read"):
        read_tasks(tmp_path / "nowhere.i")
    path = tmp_path / "exp.i"
    path.write_text('i("^ij~ij")')
    with pytest.raises(OptionError, match="no line that gives shapes"):
        read_tasks(path)
    path.write_text('# shapes: 4x5 4x5\ni("^ij~ij")')
    with pytest.raises(ShapeError, match="gives 2 shapes"):
        read_tasks(path)
    path.write_text('# shapes: 4by5\ni("^ij~ij")')
    with pytest.raises(ParseError, match="'4by5' is no shape"):
        read_tasks(path)
