//! Kernels that compute without calls: an ordinary program, run with limits, without them, and as a process.
//!
//! The variable `KERNEL` names the kernel, `COUNT` the repetitions. It prints a number that depends on all
//! the work.

#![expect(clippy::print_stdout, reason = "what a hook prints is in the report")]
#![expect(clippy::indexing_slicing, reason = "a kernel is written as one that is to be fast")]

use std::{env, fmt::Write, hint::black_box, process::ExitCode};

fn main() -> ExitCode {
    match run() {
        Ok(sum) => {
            println!("{sum:016x}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<u64, String> {
    let variable = |name| env::var(name).map_err(|error| format!("`{name}`: {error}"));
    let count = variable("COUNT")?.parse().map_err(|error| format!("`COUNT`: {error}"))?;
    let kernel = match variable("KERNEL")?.as_str() {
        "xorshift" => xorshift,
        "divide" => divide,
        "crc" => crc,
        "matrix" => matrix,
        "sort" => sort,
        "copy" => copy,
        "fibonacci" => fibonacci,
        "chase" => chase,
        "text" => text,
        kernel => return Err(format!("there is no kernel `{kernel}`")),
    };
    Ok(kernel(count))
}

/// Marsaglia's generator: shifts and exclusive ors, each dependent on the one before.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(((self.next() >> 32) * u64::from(bound)) >> 32).unwrap_or_default()
    }
}

const SEED: Random = Random(0x9e37_79b9_7f4a_7c15);

/// Numbers of that generator.
fn xorshift(count: u32) -> u64 {
    let mut random = SEED;
    for _ in 0..count {
        random.next();
    }
    random.0
}

/// Divisions of 64 bits.
fn divide(count: u32) -> u64 {
    let (mut number, mut sum) = (u64::MAX, 0_u64);
    for n in 0..count {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        sum = sum.wrapping_add(number / u64::from(n | 1));
    }
    sum
}

/// Checksums of 64 KiB by a table: lookups of bytes.
fn crc(count: u32) -> u64 {
    let mut table = [0; 256];
    for (cell, byte) in table.iter_mut().zip(0_u32..) {
        *cell = (0..8).fold(byte, |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 });
    }
    let mut random = SEED;
    let bytes: Vec<u8> = (0..64 * 1024).map(|_| random.next().to_le_bytes()[7]).collect();
    let mut crc = u32::MAX;
    for _ in 0..count {
        for byte in &bytes {
            crc = (crc >> 8) ^ table[usize::from(crc.to_le_bytes()[0] ^ byte)];
        }
    }
    u64::from(!crc)
}

/// Products of two matrices of 64 rows and columns: floating point.
fn matrix(count: u32) -> u64 {
    const SIZE: usize = 64;
    let mut random = SEED;
    let mut filled = || {
        let row = |random: &mut Random| std::array::from_fn(|_| f64::from(random.below(1000)) / 1000.0);
        (0..SIZE).map(|_| row(&mut random)).collect::<Vec<[f64; SIZE]>>()
    };
    let (mut left, right) = (filled(), filled());
    let mut sum = 0.0;
    for n in 0..count {
        left[0][0] = f64::from(n);
        let mut product = [[0.0; SIZE]; SIZE];
        for (to, from) in product.iter_mut().zip(&left) {
            for (factor, row) in from.iter().zip(&right) {
                for (cell, other) in to.iter_mut().zip(row) {
                    *cell += factor * other;
                }
            }
        }
        sum += product.as_flattened().iter().sum::<f64>();
    }
    f64::to_bits(sum)
}

/// Sorts 100,000 numbers: comparisons and unpredictable branches.
fn sort(count: u32) -> u64 {
    let (mut random, mut sum) = (SEED, 0);
    for _ in 0..count {
        let mut numbers: Vec<u32> = (0..100_000).map(|_| random.below(u32::MAX)).collect();
        numbers.sort_unstable();
        sum += u64::from(numbers[50_000]);
    }
    sum
}

/// Fills and copies 64 KiB: bulk memory instructions.
fn copy(count: u32) -> u64 {
    let (mut from, mut to) = (vec![0_u8; 64 * 1024], vec![0_u8; 64 * 1024]);
    let mut sum = 0;
    for n in 0..count {
        from.fill(n.to_le_bytes()[0]);
        to.copy_from_slice(black_box(&from));
        sum += u64::from(black_box(&to)[40_000]);
    }
    sum
}

/// The 22nd Fibonacci number, by double recursion.
fn fibonacci(count: u32) -> u64 {
    fn number(n: u32) -> u64 {
        if n < 2 { u64::from(n) } else { number(n - 1) + number(n - 2) }
    }
    (0..count).map(|_| number(black_box(22))).sum()
}

/// Follows pointers through 2 MiB in one circle, beyond the first caches.
fn chase(count: u32) -> u64 {
    const PLACES: u32 = 512 * 1024;
    let mut random = SEED;
    let mut next: Vec<u32> = (0..PLACES).collect();
    // Sattolo's shuffle leaves one circle.
    for place in (1..PLACES).rev() {
        next.swap(place as usize, random.below(place) as usize);
    }
    let (mut place, mut sum) = (0, 0);
    for _ in 0..count {
        place = next[place as usize];
        sum += u64::from(place);
    }
    sum
}

/// Builds texts of 1000 words, with an allocation for each.
fn text(count: u32) -> u64 {
    let mut sum = 0;
    for n in 0..count {
        let mut text = String::new();
        for word in 0..1000 {
            let word = format!("word {}", word ^ n);
            // Writing to a text does not fail.
            let _written = write!(text, "{word}, ");
        }
        sum += text.len() as u64 + u64::from(black_box(text.as_bytes())[1000]);
    }
    sum
}
