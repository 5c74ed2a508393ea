# SPDX-License-Identifier: MIT
"""The fs tree before and after a commit that changed one inode, and where its nodes lie in the zone of metadata."""
from bench.picture import INK, MUTED
from bench.pictures.sheet import BLUE, GREY, HEAD, MARGIN, ORANGE, begin, box, legend

WIDTH, LEAF, GAP, LEAF_HEIGHT = 980, 60, 8, 58
ROOT_WIDTH, ROOT_HEIGHT = 170, 46
BLOCK, NODE = 4096, 4096


def address(node):
    return node["address"][0]


def leaves_of(tree):
    """The leaves in the order of their keys, which is the order of the root's children."""
    found = {address(node): node for node in tree["nodes"]}
    return [found[child["address"][0]] for child in tree["nodes"][0]["children"]]


def words(leaf):
    return [f"{leaf['header']['count']} items", f"gen. {leaf['header']['generation']}"]


def draw_edges(svg, root, leaves, places, colour, width):
    x, y = root[0] + ROOT_WIDTH / 2, root[1] + ROOT_HEIGHT
    for leaf in leaves:
        left, top = places[address(leaf)]
        svg.line(float(x), float(y), float(left + LEAF / 2), float(top), colour, width)


def draw_root(svg, place, node, when, colour, bold):
    box(svg, *place, ROOT_WIDTH, ROOT_HEIGHT, colour,
        [f"root, {when}", f"{node['header']['count']} children, generation {node['header']['generation']}"], 11, bold)


def draw_zone(svg, y, before, after, zone_size):
    """Draws the blocks of the zone, from its start to the newest node."""
    old = {address(n) for n in before["nodes"]}
    new = {address(n) for n in after["nodes"]} - old
    gone = old - {address(n) for n in after["nodes"]}
    zone = min(new) // zone_size
    first, count = zone * zone_size, (max(new) - zone * zone_size) // BLOCK + 1
    side = min(34.0, (WIDTH - 2 * MARGIN) / count)
    svg.text(MARGIN, y - 10, f"The same nodes in zone {zone}, a square for each node of {NODE} bytes, in the order "
             "in which they were written", 12.5, weight="bold")
    for i in range(count):
        at = first + i * BLOCK
        colour = ORANGE if at in new else BLUE if at in old else GREY
        box(svg, MARGIN + i * side, y, side - 2, 26, colour, dashes="3 2" if at in gone else None, bold=at in new)
    end = MARGIN + count * side
    svg.line(float(end), y - 4.0, float(end), y + 30.0, INK, 1.6)
    svg.text(float(end + 5), y + 17.0, "write pointer" if end + 90 < WIDTH else "", 11, MUTED)


def draw(before, after):
    old_leaves, new_leaves = leaves_of(before), leaves_of(after)
    old, new = {address(n) for n in old_leaves}, {address(n) for n in new_leaves}
    row = []
    for was, now in zip(old_leaves, new_leaves):
        row += [was] if address(was) == address(now) else [was, now]
    svg = begin("One commit, one changed inode",
                "Nothing is overwritten: the leaf with the inode and all nodes above it are written anew, behind what "
                "is there. The other leaves belong to both trees.")
    left = (WIDTH - len(row) * (LEAF + GAP) + GAP) / 2
    roots = ((WIDTH * 0.28 - ROOT_WIDTH / 2, HEAD + 24), (WIDTH * 0.72 - ROOT_WIDTH / 2, HEAD + 24))
    leaf_y = HEAD + 190
    places = {address(leaf): (left + i * (LEAF + GAP), leaf_y) for i, leaf in enumerate(row)}
    draw_edges(svg, roots[0], old_leaves, places, BLUE[1], 1.0)
    draw_edges(svg, roots[1], new_leaves, places, ORANGE[1], 1.3)
    draw_root(svg, roots[0], before["nodes"][0], "before", BLUE, False)
    draw_root(svg, roots[1], after["nodes"][0], "after", ORANGE, True)
    for leaf in row:
        is_new, is_gone = address(leaf) not in old, address(leaf) not in new
        box(svg, *places[address(leaf)], LEAF, LEAF_HEIGHT, ORANGE if is_new else BLUE,
            ["leaf", *words(leaf)], 10.5, is_new, "3 2" if is_gone else None)
    legend(svg, MARGIN, leaf_y + LEAF_HEIGHT + 34,
           [("written by the commit", ORANGE), ("written before; dashed: only the tree before has it", BLUE),
            ("nodes of other trees, or zeroes", GREY)])
    draw_zone(svg, leaf_y + LEAF_HEIGHT + 86, before, after, after["zone_size"])
    return svg.document(WIDTH, leaf_y + LEAF_HEIGHT + 136, "The fs tree before and after a commit: two new nodes, "
                        "all others shared")
