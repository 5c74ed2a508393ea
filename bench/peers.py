# SPDX-License-Identifier: MIT
"""The file systems that are compared. A peer is made fresh in a directory of the medium. It is a context manager:

    with Zfuse(place, settings, SPARSE) as peer:
        ... peer.mnt, peer.sync(), peer.device(), peer.pid ...

Daemons run in the foreground, as children that end with this program. All peers are mounted without access times and
with one copy of their metadata; images are files of the same size in the same directory.
"""
import ctypes
import dataclasses
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time

from bench import measure

MOUNT_WAIT_S = 20
STOP_WAIT_S = 60
PR_SET_PDEATHSIG = 1


class PeerError(Exception):
    """A peer could not be made, or did not do what was asked of it."""


class Unsupported(Exception):
    """The peer does not support the operation; this is no failure of the peer."""


@dataclasses.dataclass(frozen=True)
class Image:
    size: int
    # Without holes. For a durable write into a hole of the image, the file system below also commits its own journal;
    # that cost is not the peer's.
    is_written: bool


SPARSE = Image(12 << 30, False)
# Large enough for the garbage that zeroing and overwriting leave until it is reclaimed.
SPARSE_LARGE = Image(32 << 30, False)
WRITTEN = Image(3 << 30, True)
# Of 1 GiB in zones of 64 MiB a third is for data, and quick machines filled that.
WRITTEN_SMALL = Image(3 << 29, True)


def run(*args, timeout=STOP_WAIT_S, **kwargs):
    """Runs a command. If it fails, its stderr is the text of the PeerError."""
    args = [str(a) for a in args]
    try:
        return subprocess.run(args, check=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs).stdout
    except subprocess.CalledProcessError as e:
        raise PeerError(f"{args[0]} failed: {(e.stderr or e.stdout).strip()[-400:] or e.returncode}") from None
    except subprocess.TimeoutExpired:
        raise PeerError(f"{args[0]} did not end within {timeout} s") from None
    except OSError as e:
        raise PeerError(f"{args[0]}: {e.strerror}") from None


def lacks_command(name):
    return None if shutil.which(name) else f"{name} is not installed"


def lacks_file(path):
    return None if path.exists() else f"{path} has not been built"


def lacks_filesystem(name):
    if name not in pathlib.Path("/proc/filesystems").read_text().split():
        subprocess.run(["modprobe", "-q", name], check=False, stderr=subprocess.DEVNULL)
    if name not in pathlib.Path("/proc/filesystems").read_text().split():
        return f"this kernel has no {name}"
    return None


def lacks_loop_devices():
    if not pathlib.Path("/dev/loop-control").exists():
        subprocess.run(["modprobe", "-q", "loop"], check=False, stderr=subprocess.DEVNULL)
    return None if pathlib.Path("/dev/loop-control").exists() else "this kernel has no loop devices"


def end_with_us():
    """Runs in the child before the daemon starts: the kernel sends the daemon SIGTERM when this program dies."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def is_mounted(path):
    """Looks in the kernel's table, because asking the file system may hang."""
    return any(line.split()[4] == str(path) for line in open("/proc/self/mountinfo", encoding="utf-8"))


class Peer:
    name = None
    is_kernel = False      # no daemon, no FUSE
    sync_is_durable = True
    rounds_max = None      # a slow peer takes part in so many rounds

    def __init__(self, place, settings, kind):
        self.place = place
        self.settings = settings
        self.kind = kind
        self.mnt = place / "mnt"
        self.image = place / "image"
        self.process = None
        self.mnt.mkdir(parents=True)

    @classmethod
    def lacks(cls, settings):
        """Why this peer cannot take part, or None."""
        raise NotImplementedError

    @classmethod
    def does(cls, operation):
        """Whether this peer takes part in the operation."""
        return operation.suite not in ("zoned", "traced", "scrub")

    def zeroing(self, program):
        """The command that calls fallocate's write-zeroes on this peer. `program` makes the call."""
        return [program]

    def zeroing_env(self):
        return None

    def room_bytes(self):
        """The free bytes of the medium."""
        return shutil.disk_usage(self.place).free

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def pid(self):
        return self.process.pid if self.process else None

    def device(self):
        return None

    def sync(self):
        run("sync", "-f", self.mnt, timeout=600)

    def serve(self, *command):
        """Starts a daemon and waits for its mount."""
        with open(self.place / "log", "wb") as log:
            self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True, preexec_fn=end_with_us)
        for _ in range(MOUNT_WAIT_S * 50):
            if is_mounted(self.mnt):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        said = (self.place / "log").read_text(errors="replace").strip()
        raise PeerError(f"{self.name} did not mount: {said[-400:]}")

    def stop(self):
        """Unmounts, ends the daemon, removes every file. Goes on after a failure; raises the first one at the end."""
        failure = self.unmount()
        if self.process:
            try:
                self.process.wait(timeout=STOP_WAIT_S)
            except subprocess.TimeoutExpired:
                failure = failure or f"{self.name} did not end within {STOP_WAIT_S} s after its unmount"
                self.process.kill()
                self.process.wait()
        if is_mounted(self.mnt):
            # The daemon was told to end while it was mounting.
            subprocess.run(["umount", "--lazy", self.mnt], check=False)
        shutil.rmtree(self.place, ignore_errors=True)
        if failure:
            raise PeerError(failure)

    def unmount(self):
        if not is_mounted(self.mnt):
            if self.process:
                self.process.terminate()
            return None
        # Other programs may keep the mount busy for a moment.
        for _ in range(20):
            if subprocess.run(["umount", self.mnt], check=False, stderr=subprocess.DEVNULL).returncode == 0:
                return None
            time.sleep(0.1)
        subprocess.run(["umount", "--lazy", self.mnt], check=False)
        return f"{self.name} could not be unmounted and was detached"


class Zfuse(Peer):
    name = "zfuse"
    more_options = ()

    @classmethod
    def lacks(cls, settings):
        return lacks_filesystem("fuse") or lacks_file(settings.build / "src/fuse/zfuse")

    @classmethod
    def does(cls, operation):
        return operation.suite != "zoned"

    def make(self):
        """Makes the filesystem. Returns the path to mount."""
        self.mkfs("--image", f"size={self.kind.size},zone-size=64M", self.image)
        prepare(self.image, self.kind)
        return self.image

    def mkfs(self, *arguments):
        run(self.settings.build / "mkfs/mkfs.zfuse", "-q", *arguments)

    def start(self):
        source = self.make()
        options = ["noatime", f"io_uring={'on' if self.settings.transport == 'io_uring' else 'off'}"]
        options += self.more_options
        options += [self.settings.options] if self.settings.options else []
        self.serve(self.settings.build / "src/fuse/zfuse", source, self.mnt, "-f", "-o", ",".join(options))
        self.wait_answers()

    def wait_answers(self):
        """Waits until the daemon answers: a mount sets up the control socket last."""
        for _ in range(MOUNT_WAIT_S * 50):
            try:
                return self.ctl("status")
            except PeerError:
                time.sleep(0.02)
        return self.ctl("status")

    def ctl(self, command):
        return run(self.settings.build / "tools/zfusectl/zfusectl", command, "--format", "json", self.mnt, timeout=600)

    def scrub(self, verb):
        """Runs `zfusectl scrub VERB`. Returns the state that it prints."""
        return json.loads(run(self.settings.build / "tools/zfusectl/zfusectl", "scrub", verb, "--format", "json",
                              self.mnt))

    def sync(self):
        # syncfs(2) reaches the daemon only on a fuseblk mount, of Linux 6.18 or later.
        run(self.settings.build / "tools/zfusectl/zfusectl", "sync", self.mnt, timeout=600)

    def device(self):
        d = json.loads(self.ctl("stats"))["device"]
        return measure.Device(reads=d["reads"], read_bytes=d["read_bytes"], writes=d["appends"] + d["writes"],
                              write_bytes=d["append_bytes"] + d["write_bytes"] + d["ahead_bytes"],
                              flushes=d["flushes"] + d["fua_writes"])


    def zeroing_env(self):
        """The kernel's FUSE refuses fallocate's write-zeroes. libzfuse-fallocate.so makes the call in another way."""
        found = sorted(self.settings.build.glob("**/libzfuse-fallocate.so"))
        if not found:
            raise Unsupported("this build has no libzfuse-fallocate.so, so zfuse was not asked for write-zeroes")
        return {**os.environ, "LD_PRELOAD": str(found[0])}


class ZfuseFlush(Zfuse):
    """zfuse which makes a durable write by a write and a flush."""
    name = "zfuse-flush"
    more_options = ("durability=flush",)

    @classmethod
    def lacks(cls, settings):
        missing = super().lacks(settings)
        if not missing and "durability" not in run(settings.build / "src/fuse/zfuse", "--help"):
            missing = "this zfuse has no option durability"
        return missing

    @classmethod
    def does(cls, operation):
        return operation.suite == "durable"


class Passthrough(Peer):
    """libfuse's own example: it hands every request to the file system below. Its speed is the limit of FUSE."""
    name = "passthrough_hp"

    @classmethod
    def lacks(cls, settings):
        return lacks_filesystem("fuse") or lacks_file(cls.program(settings))

    @classmethod
    def does(cls, operation):
        return operation.suite in ("data", "files", "tree", "mix")

    @staticmethod
    def program(settings):
        return settings.build / "subprojects/fuse3/example/passthrough_hp"

    @staticmethod
    def files_max():
        """The most files that it can have: it keeps a descriptor open for every file that the kernel knows."""
        return resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 500

    def start(self):
        self.source = self.place / "source"
        self.source.mkdir()
        options = "noatime" + (",io_uring" if self.settings.transport == "io_uring" else "")
        self.serve(self.program(self.settings), "--nopassthrough", "--foreground", "-o", options, self.source, self.mnt)

    def sync(self):
        run("sync", "-f", self.source, timeout=600)


class Fuse2fs(Peer):
    name = "fuse2fs"
    sync_is_durable = False  # fuse2fs keeps its cache until the unmount
    rounds_max = 3           # fuse2fs searches directories from their start: 20,000 files take minutes

    @classmethod
    def lacks(cls, settings):
        return lacks_filesystem("fuse") or lacks_command("fuse2fs") or lacks_command("mkfs.ext4")

    @classmethod
    def does(cls, operation):
        return operation.suite in ("data", "files", "tree", "mix")

    def start(self):
        make_sparse(self.image, self.kind)
        run("mkfs.ext4", "-q", "-F", self.image)
        self.serve("fuse2fs", self.image, self.mnt, "-f", "-o", "noatime")

    def sync(self):
        run("sync", self.image, timeout=600)


def make_sparse(path, kind):
    with open(path, "wb") as f:
        f.truncate(kind.size)


def prepare(path, kind):
    """Runs after mkfs, which may punch holes: writes zeroes into each hole."""
    if not kind.is_written:
        return
    zeroes = bytes(4 << 20)
    with open(path, "r+b") as f:
        at, size = 0, os.fstat(f.fileno()).st_size
        while at < size and (at := os.lseek(f.fileno(), at, os.SEEK_HOLE)) < size:
            end = next_data(f.fileno(), at, size)
            while at < end:
                at += os.pwrite(f.fileno(), zeroes[:min(len(zeroes), end - at)], at)
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def next_data(fd, at, size):
    try:
        return os.lseek(fd, at, os.SEEK_DATA)
    except OSError:
        return size


class Loop(Peer):
    """A file system of the kernel on a loop device. The loop device uses direct I/O to the file, as zfuse does."""
    is_kernel = True
    mkfs = ()
    options = "noatime"
    empty_flushes = None

    @classmethod
    def lacks(cls, settings):
        return lacks_loop_devices() or lacks_filesystem(cls.name) or lacks_command(cls.mkfs[0])

    def start(self):
        make_sparse(self.image, self.kind)
        run(*self.mkfs, self.image)
        prepare(self.image, self.kind)
        self.loop = run("losetup", "--find", "--show", "--direct-io=on", "--sector-size", "4096", self.image).strip()
        self.empty_flushes = measure.TracedRequests([os.path.basename(self.loop)], measure.EMPTY_FLUSH,
                                                    self.place / "tracing")
        try:
            run("mount", "-t", self.name, "-o", self.options, self.loop, self.mnt)
        finally:
            # The kernel detaches the loop device when the mount, its last user, ends: also if this program is killed.
            run("losetup", "--detach", self.loop)

    def device(self):
        counted = measure.block_device(os.path.basename(self.loop))
        counted.writes -= self.empty_flushes.count()
        return counted

    def stop(self):
        if self.empty_flushes:
            self.empty_flushes.close()
        super().stop()


class Ext4(Loop):
    name = "ext4"
    # noinit_itable: the kernel does not write inode tables in the background during a measurement.
    mkfs = ("mkfs.ext4", "-q", "-F", "-b", "4096")
    options = "noatime,noinit_itable"


class Btrfs(Loop):
    name = "btrfs"
    mkfs = ("mkfs.btrfs", "-q", "-f", "-m", "single")


class Plain(Peer):
    """A directory of the medium itself, on which all other peers are made."""
    name = "plain"
    is_kernel = True

    @classmethod
    def lacks(cls, settings):
        return None

    @classmethod
    def does(cls, operation):
        return operation.is_raw

    def start(self):
        pass

    def unmount(self):
        return None


PEERS = {peer.name: peer for peer in (Zfuse, ZfuseFlush, Passthrough, Fuse2fs, Ext4, Btrfs, Plain)}
