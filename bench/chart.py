"""Line charts as SVG, drawn from the numbers of a table. Standard library only."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 170, 36, 44
COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e5ea2", "#b8860b", "#444444")


def ticks(low, high):
    """Returns at most seven round numbers from `low` to `high`, low < high."""
    step = min(digit * 10**power for power in range(-6, 9)
               for digit in (1, 2, 5) if high - low <= 6 * digit * 10**power)
    return [i * step for i in range(math.ceil(low / step),
                                    math.floor(high / step) + 1)]


def line_chart(title, x_name, y_name, series):
    """Draws series: {name: [(x, y), ...]}. The values of x are evenly spaced,
    in order."""
    xs = sorted({x for points in series.values() for x, _ in points})
    ys = [y for points in series.values() for _, y in points]
    low, high = min(0, *ys), max(ys) * 1.05 or 1
    inner = WIDTH - LEFT - RIGHT

    def place_x(x):
        return LEFT + inner * (xs.index(x) + 0.5) / len(xs)

    def place_y(y):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y - low) / (
            high - low)

    def text(x, y, words, anchor="middle", more=""):
        return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>'
                f"{escape(str(words))}</text>")

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
           f'height="{HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           text(LEFT, 20, title, "start", ' font-weight="bold"'),
           text(LEFT + inner / 2, HEIGHT - 8, x_name),
           text(14, TOP - 8, y_name, "start")]
    for y in ticks(low, high):
        at = place_y(y)
        out.append(f'<path d="M{LEFT} {at:.1f}H{LEFT + inner}" '
                   'stroke="#dddddd"/>')
        out.append(text(LEFT - 6, at + 4, f"{y:g}", "end"))
    for x in xs:
        out.append(text(place_x(x), HEIGHT - BOTTOM + 18, f"{x:,}"))
    for i, (name, points) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        path = " L".join(f"{place_x(x):.1f} {place_y(y):.1f}"
                         for x, y in points)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" '
                   'stroke-width="2"/>')
        out += [f'<circle cx="{place_x(x):.1f}" cy="{place_y(y):.1f}" r="3" '
                f'fill="{colour}"/>' for x, y in points]
        at = TOP + 8 + 18 * i
        out.append(f'<path d="M{WIDTH - RIGHT + 12} {at}h18" '
                   f'stroke="{colour}" stroke-width="2"/>')
        out.append(text(WIDTH - RIGHT + 36, at + 4, name, "start"))
    return "\n".join(out) + "\n</svg>\n"
