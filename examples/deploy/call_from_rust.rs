//! Calls an exported attention from Rust, through a safe function that checks lengths.

use std::os::raw::{c_int, c_void};

extern "C" {
    fn attention_abi_version() -> c_int;
    fn attention_workspace_size(in0_0: i64, in0_1: i64, in1_0: i64, in2_1: i64, threads: c_int) -> i64;
    fn attention_run(
        in0: *const f32,
        in1: *const f32,
        in2: *const f32,
        out0: *mut f32,
        in0_0: i64,
        in0_1: i64,
        in1_0: i64,
        in2_1: i64,
        workspace: *mut c_void,
        workspace_size: i64,
        threads: c_int,
    ) -> c_int;
}

/// Attention of `queries` over `keys` and `values`: row-major, `width` numbers a row.
fn attention(queries: &[f32], keys: &[f32], values: &[f32], width: usize) -> Result<Vec<f32>, i64> {
    let (rows, columns) = (queries.len() / width, keys.len() / width);
    assert_eq!(queries.len(), rows * width);
    assert_eq!(keys.len(), columns * width);
    assert_eq!(values.len(), columns * width);
    let (m, n, w) = (rows as i64, columns as i64, width as i64);
    let mut out = vec![0.0f32; rows * width];
    // SAFETY: the slices have the lengths that the extents say, and nothing overlaps.
    unsafe {
        let size = attention_workspace_size(m, w, n, w, 1);
        if size < 0 {
            return Err(-size);
        }
        let mut workspace = vec![0.0f32; (size as usize).div_ceil(4)];
        let code = attention_run(
            queries.as_ptr(),
            keys.as_ptr(),
            values.as_ptr(),
            out.as_mut_ptr(),
            m,
            w,
            n,
            w,
            workspace.as_mut_ptr().cast(),
            size,
            1,
        );
        if code != 0 {
            return Err(i64::from(code));
        }
    }
    Ok(out)
}

fn made_up(floats: usize, which: usize) -> Vec<f32> {
    (0..floats).map(|n| ((n * 7 + which * 3) % 13) as f32 / 16.0 - 0.375).collect()
}

fn main() {
    assert_eq!(unsafe { attention_abi_version() }, 1);
    let (rows, width) = (40, 24);
    let [q, k, v] = [0, 1, 2].map(|which| made_up(rows * width, which));
    match attention(&q, &k, &v, width) {
        Ok(out) => println!("out0 {:.5}", out.iter().map(|&x| f64::from(x)).sum::<f64>()),
        Err(code) => std::process::exit(code as i32),
    }
}
