//! What the operating system says about this process: memory, processor time
//! and open files, read from `/proc` at each scrape. Elsewhere than on Linux
//! these metrics are absent.

use std::fs;

use prometheus_client::{
    collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};

/// Ticks a second in `/proc/self/stat`: `USER_HZ`, which is 100 on every Linux
/// that user space sees, whatever the kernel's own rate.
const TICKS_A_SECOND: f64 = 100.0;

/// Reads the process's figures when metrics are asked for.
#[derive(Debug)]
pub struct Collector;

impl collector::Collector for Collector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        if let Some(bytes) = resident_bytes() {
            let gauge = ConstGauge::new(bytes);
            let metric = encoder.encode_descriptor(
                "process_resident_memory_bytes",
                "Resident memory",
                None,
                gauge.metric_type(),
            )?;
            gauge.encode(metric)?;
        }
        if let Some(seconds) = cpu_seconds() {
            let counter = ConstCounter::new(seconds);
            let metric = encoder.encode_descriptor(
                "process_cpu_seconds",
                "Processor time used, user and system",
                None,
                counter.metric_type(),
            )?;
            counter.encode(metric)?;
        }
        if let Some(files) = open_files() {
            let gauge = ConstGauge::new(files);
            let metric = encoder.encode_descriptor(
                "process_open_fds",
                "Open file descriptors",
                None,
                gauge.metric_type(),
            )?;
            gauge.encode(metric)?;
        }
        Ok(())
    }
}

fn resident_bytes() -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold spaces; the fields after it do not.
    // utime and stime are fields 14 and 15 of proc(5), 12th and 13th from there.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / TICKS_A_SECOND)
}

fn open_files() -> Option<i64> {
    i64::try_from(fs::read_dir("/proc/self/fd").ok()?.count()).ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn linux_knows_its_processes() {
        assert!(resident_bytes().unwrap() > 1 << 20);
        assert!(cpu_seconds().unwrap() >= 0.0);
        assert!(open_files().unwrap() > 2);
    }
}
