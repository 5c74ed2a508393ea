# SPDX-License-Identifier: MIT
"""A record of the intent log: every byte of its header block, from `zfusectl log --hex`."""
from bench.picture import INK, MUTED
from bench.pictures.sheet import BLUE, GREEN, GREY, HEAD, MARGIN, ORANGE, PINK, RED, SKY, YELLOW, begin, box

WIDTH = 960
ROW, SIDE = 64, 7.0  # bytes in a row; the width of a byte in pixels
BLOCK = 4096
SHORT_ROWS = 3       # rows that are drawn of the zeroes at the end

# The pieces that are drawn. Struct of the fields: (name, colour, fields whose values are shown).
PIECES = {
    "zf_disk_log_header": ("header", BLUE, ("sequence", "generation", "zone_resets", "body_count")),
    "zf_disk_log_body": ("body", ORANGE, ("type", "number", "data_count")),
    "zf_disk_log_inode": ("whose state it is", YELLOW, ("ino", "range_count")),
    "zf_disk_inode": ("the inode's item", GREEN, ("size", "mode", "nlink")),
    "zf_disk_log_range": ("range", PINK, ("offset", "len", "riding", "address")),
    "checksums": ("its checksums, one a block", RED, ()),
    "packed block": ("first data block, packed by LZ4", SKY, ()),
    "rest of the block": ("zeroes", GREY, ()),
}


def pieces_of(dump):
    """[(key, offset, size, {field: value})], adjacent fields of one struct together."""
    found = []
    for entry in dump:
        key = entry.get("struct", entry["field"])
        if not found or found[-1][0] != key:
            found.append([key, entry["offset"], 0, {}])
        found[-1][2] += entry["size"]
        found[-1][3][entry["field"]] = entry.get("value", "")
    return found


def draw_bytes(svg, x, y, offset, size, colour):
    """Draws a piece as rows of bytes."""
    end = offset + size
    while offset < end:
        row, column = divmod(offset, ROW)
        part = min(end - offset, ROW - column)
        svg.rect(x + column * SIDE, y + row * SIDE, part * SIDE, SIDE - 1, colour[0], stroke=colour[1],
                 stroke_width=0.6)
        offset += part


def line_of(piece):
    key, offset, size, values = piece
    name, colour, told = PIECES.get(key, (key, GREY, ()))
    more = ", ".join(f"{field} {values[field]}" for field in told if field in values)
    return name, colour, f"{offset}: {size} bytes", more


def draw(record, zone_size):
    pieces = pieces_of(record["dump"])
    svg = begin("A record of the intent log",
                f"What fsync of a new file's 9000 bytes appended to zone {record['zone']}: one write, durable when it "
                "completes. Each row is 64 bytes of the first block.")
    x, y = float(MARGIN), float(HEAD + 20)
    zeroes = pieces[-1]
    shown = min(zeroes[1] + zeroes[2], (zeroes[1] // ROW + SHORT_ROWS) * ROW)
    for piece in pieces:
        size = min(piece[1] + piece[2], shown) - piece[1]
        draw_bytes(svg, x, y, piece[1], size, line_of(piece)[1])
    bottom = y + shown / ROW * SIDE
    svg.text(x, bottom + 18, f"... zeroes up to {BLOCK} bytes", 11, MUTED)
    list_x, list_y = x + ROW * SIDE + 36, y + 12
    svg.text(list_x, list_y - 16, "from byte: how many", 11, MUTED)
    for piece in pieces:
        name, colour, where, more = line_of(piece)
        svg.rect(list_x, list_y - 9, 12.0, 12.0, colour[0], stroke=colour[1])
        svg.text(list_x + 20, list_y + 1, name, 12.5, weight="bold")
        svg.text(list_x + 20, list_y + 17, where + (f"; {more}" if more else ""), 11, MUTED)
        list_y += 42
    y = max(bottom + 50, list_y + 10)
    following = record["data_blocks"] - (1 if record["carried_bytes"] else 0)
    box_width = 150
    svg.text(x, y, f"All of it, in blocks of {BLOCK} bytes:", 12.5, weight="bold")
    box(svg, x, y + 12, box_width, 40, BLUE, ["this block"], 12)
    for i in range(following):
        box(svg, x + (i + 1) * (box_width + 6), y + 12, box_width, 40, SKY,
            [f"data block {i + (2 if record['carried_bytes'] else 1)}"], 12)
    svg.text(x, y + 72, f"The record lies at {record['address']} = zone {record['zone']} + "
             f"{record['address'] % zone_size}. Nothing in it depends "
             "on that: the device chose the place.", 12, INK)
    return svg.document(WIDTH, y + 92, "The bytes of a log record: header, a body with an inode's state and a range, "
                        "packed data")
