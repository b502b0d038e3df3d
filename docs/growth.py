#!/usr/bin/env python3
"""growth.py BINARY MAKE_BIG [LAYERS…]: measures how inspect and simulate grow, and draws it.

Makes a program of that many layers (about ten instructions each) with MAKE_BIG, runs BINARY on it as a whole process,
and writes docs/growth.csv and docs/growth.svg. Needs the standard library alone.
growth.py --draw: draws again from growth.csv.
"""
import csv
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "growth.csv")
PICTURE = os.path.join(HERE, "growth.svg")
COLUMNS = ["command", "layers", "instructions", "file_bytes", "cpu_s", "peak_bytes"]


def run(command):
    """CPU seconds and peak resident bytes of one process; of short ones the fastest of three."""
    best, runs = None, 0
    while best is None or (runs < 3 and best[0] < 2):
        with open(os.devnull, "w") as nowhere:
            process = subprocess.Popen(command, stdout=nowhere)
            _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"{' '.join(command)} ended with status {status}")
        cpu = usage.ru_utime + usage.ru_stime
        runs += 1
        if best is None or cpu < best[0]:
            best = (cpu, usage.ru_maxrss * 1024)
    return best


def measure(binary, make_big, layers):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "big.txt")
        for count in layers:
            with open(program, "w") as out:
                subprocess.run([sys.executable, make_big, str(count)], stdout=out, check=True)
            with open(program) as text:
                instructions = sum(" = " in line for line in text)
            for name, command in [("inspect", ["inspect", program]),
                                  ("inspect --json", ["inspect", program, "--json"]),
                                  ("simulate", ["simulate", program, "--hw", "gb200"])]:
                cpu, peak = run([binary] + command)
                rows.append([name, count, instructions, os.path.getsize(program), f"{cpu:.2f}", peak])
                print(*rows[-1], flush=True)
    with open(TABLE, "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)


class Panel:
    """One pair of logarithmic axes."""

    WIDTH, HEIGHT = 330, 250

    def __init__(self, left, top, title, x_range, y_range, y_names):
        self.left, self.top, self.title = left, top, title
        self.x_range, self.y_range, self.y_names = x_range, y_range, y_names

    def x(self, value):
        low, high = map(math.log10, self.x_range)
        return self.left + (math.log10(value) - low) / (high - low) * self.WIDTH

    def y(self, value):
        low, high = map(math.log10, self.y_range)
        return self.top + self.HEIGHT - (math.log10(value) - low) / (high - low) * self.HEIGHT

    def frame(self):
        bottom, right = self.top + self.HEIGHT, self.left + self.WIDTH
        parts = [f'<text x="{self.left}" y="{self.top - 12}" font-weight="bold">{self.title}</text>']
        for value, name in self.y_names:
            parts.append(f'<line x1="{self.left}" y1="{self.y(value):.1f}" x2="{right}" y2="{self.y(value):.1f}" stroke="#ddd"/>')
            parts.append(f'<text x="{self.left - 6}" y="{self.y(value) + 4:.1f}" text-anchor="end">{name}</text>')
        for value, name in [(1e4, "10 k"), (1e5, "100 k"), (1e6, "1 M")]:
            parts.append(f'<line x1="{self.x(value):.1f}" y1="{self.top}" x2="{self.x(value):.1f}" y2="{bottom}" stroke="#ddd"/>')
            parts.append(f'<text x="{self.x(value):.1f}" y="{bottom + 16}" text-anchor="middle">{name}</text>')
        parts.append(f'<rect x="{self.left}" y="{self.top}" width="{self.WIDTH}" height="{self.HEIGHT}" fill="none" stroke="#888"/>')
        parts.append(f'<text x="{(self.left + right) / 2}" y="{bottom + 34}" text-anchor="middle">instructions</text>')
        return parts

    def curve(self, points, colour, dashed=False):
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>']
        if not dashed:
            parts += [f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3" fill="{colour}"/>' for x, y in points]
        return parts


def draw():
    with open(TABLE, newline="") as text:
        rows = list(csv.DictReader(text))
    most = max(float(row["instructions"]) for row in rows)
    least = min(float(row["instructions"]) for row in rows)
    x_range = (least / 1.4, most * 1.4)
    time = Panel(64, 40, "CPU time of the whole process", x_range, (0.01, 100),
                 [(0.01, "10 ms"), (0.1, "100 ms"), (1, "1 s"), (10, "10 s"), (100, "100 s")])
    memory = Panel(500, 40, "peak memory, times the file", x_range, (1, 20), [(1, "1"), (2, "2"), (5, "5"), (10, "10"), (20, "20")])
    parts = time.frame() + memory.frame()
    colours = {"inspect": "#1b6ca8", "inspect --json": "#3a9a5b", "simulate": "#c8553d"}
    for number, (name, colour) in enumerate(colours.items()):
        own = [row for row in rows if row["command"] == name]
        parts += time.curve([(float(r["instructions"]), float(r["cpu_s"])) for r in own], colour)
        parts += memory.curve([(float(r["instructions"]), float(r["peak_bytes"]) / float(r["file_bytes"])) for r in own], colour)
        y = 338 + 18 * number
        parts.append(f'<line x1="64" y1="{y}" x2="92" y2="{y}" stroke="{colour}" stroke-width="2"/><text x="100" y="{y + 4}">{name}</text>')
    inspected = [row for row in rows if row["command"] == "inspect"]
    # In proportion, through the largest program.
    scale = float(inspected[-1]["cpu_s"]) / float(inspected[-1]["instructions"])
    start = max(least, 0.0105 / scale)
    parts += time.curve([(start, start * scale), (most, most * scale)], "#555", dashed=True)
    parts.append('<line x1="250" y1="338" x2="278" y2="338" stroke="#555" stroke-width="2" stroke-dasharray="5 4"/>'
                 '<text x="286" y="342">in proportion to the instructions</text>')
    with open(PICTURE, "w") as out:
        out.write('<svg xmlns="http://www.w3.org/2000/svg" width="860" height="400" font-family="sans-serif" font-size="12">\n'
                  '<rect width="860" height="400" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


if __name__ == "__main__":
    if sys.argv[1:] != ["--draw"]:
        if len(sys.argv) < 3:
            sys.exit(__doc__)
        measure(sys.argv[1], sys.argv[2], [int(a) for a in sys.argv[3:]] or [1000, 3000, 10000, 30000, 100000, 300000])
    draw()
