"""Runs commands one at a time and measures each: wall time and peak memory. A small process of its own.

The kernel counts into a child's peak the memory that it shares with its parent before it becomes another
program. So what is measured is never a child of the benchmark, which holds much, but of this process: standard
library only. One JSON object a line in, one out; see `measure.Launcher`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        start = time.perf_counter()
        process = subprocess.Popen(
            request["command"],
            env={**os.environ, **request["env"]},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        answer = {
            "code": process.returncode,
            "wall": wall,
            "cpu": usage.ru_utime + usage.ru_stime,
            "peak_bytes": usage.ru_maxrss * 1024,  # Linux counts in KiB
            "output": output.decode(errors="replace")[-4000:],
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
