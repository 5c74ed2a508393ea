#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the test of `zfusectl restore` does besides mounting:

    restore.py make DIR SEED [PART]          makes a tree, or changes it
    restore.py map DIR MAP                   notes which inode each path has
    restore.py damage IMAGE MAP SEED WHOLE   destroys superblocks, a node, and blocks here and there; notes in WHOLE which
                                             paths have lost nothing
    restore.py unroot IMAGE MAP WHOLE        destroys every root tree; all paths are whole
    restore.py age IMAGE COUNT               destroys the newest COUNT superblocks
    restore.py behead IMAGE MAP WHOLE        destroys every node of the files' tree above its leaves; all paths are whole
    restore.py compare REFERENCE COPY [WHOLE]  everything is the same, or what WHOLE names is there

ZFUSECTL names the program.
"""
import hashlib
import json
import os
import random
import stat
import subprocess
import sys

BLOCK = 4096
INODE, EXTENT, ENTRY_BY_COOKIE = 1, 7, 6


def zfusectl(*args):
    return json.loads(subprocess.run([os.environ["ZFUSECTL"], *args, "--format", "json"], check=True,
                                     stdout=subprocess.PIPE).stdout)


# ---- a tree ----

def write(path, data, offset=0):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o640)
    os.pwrite(fd, data, offset)
    os.close(fd)


def make_files(top, rng, part):
    for d in range(12):
        folder = os.path.join(top, f"dir {d % 4}", f"part {part}", f"{d}")
        os.makedirs(folder, exist_ok=True)
        for f in range(40):
            path = os.path.join(folder, f"file {f}")
            write(path, rng.randbytes(rng.choice([0, 1, 700, 4096, 9000, 20000])))
            if f % 10 == 0:
                os.setxattr(path, "user.name", rng.randbytes(30))
            if f % 10 == 1:
                os.link(path, path + " again")
            if f % 10 == 2:
                os.symlink("x" * rng.randrange(1, 3000), path + " link")
            os.chown(path, rng.randrange(1000), rng.randrange(1000))
            os.utime(path, ns=(rng.randrange(10**18), rng.randrange(10**18)))


def make_large(top, rng):
    for f in range(6):
        path = os.path.join(top, f"large {f}")
        write(path, rng.randbytes(1 << 20))
        os.truncate(path, (3 << 20) + 17)
        for _ in range(60):
            write(path, rng.randbytes(BLOCK), rng.randrange(700) * BLOCK)


def delete_some(top, rng):
    for folder, _, files in os.walk(top):
        for name in sorted(files):
            if rng.randrange(7) == 0:
                os.unlink(os.path.join(folder, name))


def make(top, seed, part="0"):
    rng = random.Random(f"{seed} {part}")
    if part != "0":
        delete_some(top, rng)
    make_files(top, rng, part)
    make_large(top, rng)


# ---- what is where ----

def paths_of(top):
    for folder, dirs, files in os.walk(top):
        for name in dirs + files:
            yield os.path.relpath(os.path.join(folder, name), top)


def note_inodes(top, to):
    with open(to, "w") as f:
        json.dump({path: os.lstat(os.path.join(top, path)).st_ino for path in paths_of(top)}, f)


def owners_of_blocks(image):
    """Which inodes lose something with a block: of the tree's leaves, and of data."""
    owners = {}
    for node in zfusectl("tree", image)["nodes"]:
        for item in node.get("items", []):
            number = item["key"]["objectid"]
            for address in node["address"]:
                owners.setdefault(address, set()).add(number)
            value = item["value"]
            if item["key"]["type"] == EXTENT and value["type"] == 2:
                for block in range(value["count"]):
                    owners.setdefault(value["address"] + block * BLOCK, set()).add(number)
    return owners


def inner_nodes(image):
    return [node["address"][0] for node in zfusectl("tree", image)["nodes"] if node["level"] == 1]


def written_blocks(image):
    for zone in zfusectl("zones", image)["zones"]:
        if zone["zone"] >= 2:
            start = zone["start"]
            yield from range(start, start + zone["write_pointer"], BLOCK)


# ---- damage ----

def destroy(image, address, rng):
    with open(image, "r+b") as f:
        f.seek(address)
        f.write(rng.randbytes(BLOCK))


def damage(image, inodes, seed, to):
    rng = random.Random(seed)
    with open(inodes) as f:
        numbers = json.load(f)
    owners = owners_of_blocks(image)
    superblocks = newest_superblocks(image, 2)
    # The root tree is one node here. Without it nothing says which leaves belong together, so it is kept.
    kept = {node["address"][0] for node in zfusectl("tree", image, "--tree", "root")["nodes"]}
    blocks = sorted(set(written_blocks(image)) - kept)
    lost = rng.sample(blocks, len(blocks) // 100) + [rng.choice(inner_nodes(image))]
    for address in lost + superblocks:
        destroy(image, address, rng)
    hurt = set().union(*(owners.get(address, set()) for address in lost))
    whole = [path for path, number in numbers.items() if number not in hurt]
    print(f"{len(lost)} blocks destroyed; of {len(numbers)} paths {len(whole)} have lost nothing")
    with open(to, "w") as f:
        json.dump({"whole": whole, "hurt": [p for p, number in numbers.items() if number in hurt]}, f)


def unroot(image, inodes, to):
    """By the magic and the owner in a node's header."""
    rng = random.Random(0)
    blocks = list(written_blocks(image))
    with open(image, "rb") as f:
        for block in blocks:
            f.seek(block)
            header = f.read(64)
            if header[8:12] == b"ZFND" and int.from_bytes(header[56:64], "little") == 1:
                destroy(image, block, rng)
    note_all(inodes, to)


def newest_superblocks(image, count):
    records = sorted(zfusectl("super", image)["records"], key=lambda r: -r["generation"])
    return [record["address"] for record in records[:count]]


def age(image, count):
    for address in newest_superblocks(image, int(count)):
        destroy(image, address, random.Random(0))


def note_all(inodes, to):
    with open(inodes) as f, open(to, "w") as noted:
        json.dump({"whole": list(json.load(f)), "hurt": []}, noted)


def behead(image, inodes, to):
    for node in zfusectl("tree", image)["nodes"]:
        if node["level"] > 0:
            destroy(image, node["address"][0], random.Random(0))
    note_all(inodes, to)


# ---- comparing ----

def content(path, st):
    if stat.S_ISLNK(st.st_mode):
        return os.readlink(path)
    if not stat.S_ISREG(st.st_mode):
        return st.st_rdev
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def attributes(path):
    return {name: os.getxattr(path, name, follow_symlinks=False) for name in os.listxattr(path, follow_symlinks=False)}


def describe(path, with_links):
    st = os.lstat(path)
    is_dir = stat.S_ISDIR(st.st_mode)
    links = st.st_nlink if with_links and not is_dir else 0
    return (st.st_mode, st.st_uid, st.st_gid, 0 if is_dir else st.st_size, st.st_mtime_ns, links, attributes(path),
            None if is_dir else content(path, st))


def compare_all(reference, copy):
    names, there = set(paths_of(reference)), set(paths_of(copy))
    if names != there:
        sys.exit(f"missing: {sorted(names - there)[:5]}, too many: {sorted(there - names)[:5]}")
    for path in sorted(names | {"."}):
        was, now = (describe(os.path.join(top, path), True) for top in (reference, copy))
        if was != now:
            sys.exit(f"{path}: {was} became {now}")


def compare_whole(reference, copy, noted):
    """A directory that has lost something may not name its files: then they are in lost+found."""
    with open(noted) as f:
        noted = json.load(f)
    hurt = set(noted["hurt"])
    elsewhere = None
    for path in noted["whole"]:
        was = describe(os.path.join(reference, path), False)
        place = os.path.join(copy, path)
        folders = [path[:i] for i, c in enumerate(path) if c == "/"]
        if os.path.lexists(place):
            if describe(place, False) != was and not stat.S_ISDIR(was[0]):
                sys.exit(f"{path}: {was} became {describe(place, False)}")
            continue
        if not hurt & set(folders) and "." not in hurt:
            sys.exit(f"{path} is missing, and no folder of it has lost anything")
        if elsewhere is None:
            elsewhere = [describe(os.path.join(copy, p), False) for p in paths_of(copy)]
        if not stat.S_ISDIR(was[0]) and was not in elsewhere:
            sys.exit(f"{path} is nowhere")


def main():
    command, *args = sys.argv[1:]
    if command == "make":
        make(*args)
    elif command == "map":
        note_inodes(*args)
    elif command == "damage":
        damage(*args)
    elif command == "age":
        age(*args)
    elif command == "behead":
        behead(*args)
    elif command == "unroot":
        unroot(*args)
    elif len(args) == 2:
        compare_all(*args)
    else:
        compare_whole(*args)


if __name__ == "__main__":
    main()
