/*
 * Replies from threads other than a ring's own must neither be lost nor race with it: the reason
 * for the patch to libfuse in subprojects/packagefiles/fuse3/, and the test that fails without it.
 *
 * A toy file system with one file answers READ and WRITE at random inline, from a second thread at
 * once, or from a second thread after a short delay. Client processes hammer the file with direct
 * I/O and verify every byte. The parent watches: a client without progress for STALL_MS is a lost
 * reply. The last round ends by aborting the connection under load, so that requests are still in
 * other threads' hands when the session is torn down.
 *
 *	fuse_uring_stress --transport=uring|dev [--rounds=N] [--seconds=N] [--seed=N]
 *
 * Parent, server and clients are separate processes, because a client stuck in a lost request
 * cannot be killed until the server is gone. They share only struct shared.
 */
#define FUSE_USE_VERSION 318

#include <fuse_lowlevel.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	BLOCK_BYTES = 4096,
	N_PROCS = 3,
	THREADS_PER_PROC = 8,
	N_CLIENTS = N_PROCS * THREADS_PER_PROC,
	REGION_BLOCKS = 64, /* of the file, owned by one client */
	MAX_IO_BLOCKS = 16,
	FILE_BYTES = N_CLIENTS * REGION_BLOCKS * BLOCK_BYTES,
	N_REPLIERS = 4,
	MAX_DELAY_US = 300,
	STALL_MS = 60000, /* for what hangs: the kernel may take its time to end a busy ring */
	EXIT_SKIP = 77,
	FILE_INO = 2,
};

#define FILE_NAME "data"

struct shared {
	_Atomic uint64_t progress[N_CLIENTS]; /* operations done by each client */
	_Atomic uint64_t by_ring;	      /* READs and WRITEs that came by io_uring */
	_Atomic uint64_t by_dev;	      /* and through /dev/fuse */
	_Atomic uint64_t handed_over;	      /* of all, those answered by another thread */
	_Atomic int ready;		      /* the server has answered INIT */
	_Atomic int stop;		      /* clients finish */
	_Atomic int aborting;		      /* clients must expect errors */
};

static struct shared *shared;

/* xorshift64*: enough to choose with, and a seed replays the choices of one thread. */
static uint64_t rng_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

static uint64_t rng_seeded(uint64_t seed, uint64_t stream)
{
	uint64_t state = (seed + 1) * 0x9e3779b97f4a7c15ULL ^ (stream + 1) * 0xd1342543de82ef95ULL;

	return state ? state : 1;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void sleep_us(uint64_t us)
{
	const struct timespec ts = {.tv_sec = (time_t)(us / 1000000),
				    .tv_nsec = (long)(us % 1000000) * 1000};

	nanosleep(&ts, NULL);
}

/* ---- server ------------------------------------------------------------------------------- */

struct request {
	struct request *next;
	fuse_req_t req;
	const char *data; /* WRITE: the payload; READ: NULL */
	char *copy;	  /* the payload's copy, where libfuse reuses its buffer */
	size_t len_bytes;
	off_t off;
	unsigned int delay_us;
};

static struct {
	char *bytes;
	uint64_t seed;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct request *head, **tail; /* under lock */
	int closing;		      /* under lock */
} server = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.wake = PTHREAD_COND_INITIALIZER,
	.tail = &server.head,
};

static void answer(const struct request *r)
{
	if (r->data) {
		memcpy(server.bytes + r->off, r->data, r->len_bytes);
		fuse_reply_write(r->req, r->len_bytes);
	} else {
		fuse_reply_buf(r->req, server.bytes + r->off, r->len_bytes);
	}
}

static void *replier_main(void *arg)
{
	(void)arg;
	for (;;) {
		struct request *r;

		pthread_mutex_lock(&server.lock);
		while (!server.head && !server.closing)
			pthread_cond_wait(&server.wake, &server.lock);
		r = server.head;
		if (r) {
			server.head = r->next;
			if (!server.head)
				server.tail = &server.head;
		}
		pthread_mutex_unlock(&server.lock);
		if (!r)
			return NULL;

		if (r->delay_us)
			sleep_us(r->delay_us);
		answer(r);
		free(r->copy);
		free(r);
	}
}

static void hand_over(const struct request *template, unsigned int delay_us)
{
	struct request *r = malloc(sizeof(*r));

	*r = *template;
	r->next = NULL;
	r->copy = NULL;
	r->delay_us = delay_us;
	/* A ring entry's buffer is ours until the reply; /dev/fuse's is reused when we return. */
	if (r->data && !fuse_req_is_uring(r->req)) {
		r->copy = malloc(r->len_bytes);
		memcpy(r->copy, r->data, r->len_bytes);
		r->data = r->copy;
	}

	atomic_fetch_add(&shared->handed_over, 1);
	pthread_mutex_lock(&server.lock);
	*server.tail = r;
	server.tail = &r->next;
	pthread_cond_signal(&server.wake);
	pthread_mutex_unlock(&server.lock);
}

static void serve(const struct request *r)
{
	static _Thread_local uint64_t rng;
	static _Atomic uint64_t streams;
	uint64_t choice;

	atomic_fetch_add(fuse_req_is_uring(r->req) ? &shared->by_ring : &shared->by_dev, 1);
	if (r->off < 0 || r->off + (off_t)r->len_bytes > FILE_BYTES) {
		fuse_reply_err(r->req, EINVAL);
		return;
	}

	if (!rng)
		rng = rng_seeded(server.seed, 1000 + atomic_fetch_add(&streams, 1));
	choice = rng_next(&rng) >> 32;
	switch (choice % 5) {
	case 0:
	case 1:
		answer(r);
		break;
	case 2:
	case 3:
		hand_over(r, 0);
		break;
	default:
		hand_over(r, (unsigned int)(choice / 5 % MAX_DELAY_US));
	}
}

static void toy_init(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	(void)conn;
	atomic_store(&shared->ready, 1);
}

static struct stat toy_stat(fuse_ino_t ino)
{
	if (ino == FILE_INO)
		return (struct stat){
			.st_ino = ino,
			.st_mode = S_IFREG | 0666,
			.st_nlink = 1,
			.st_size = FILE_BYTES,
		};
	return (struct stat){.st_ino = ino, .st_mode = S_IFDIR | 0755, .st_nlink = 2};
}

static void toy_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = {
		.ino = FILE_INO,
		.attr = toy_stat(FILE_INO),
		.attr_timeout = 3600,
		.entry_timeout = 3600,
	};

	if (parent != FUSE_ROOT_ID || strcmp(name, FILE_NAME) != 0)
		fuse_reply_err(req, ENOENT);
	else
		fuse_reply_entry(req, &e);
}

static void toy_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	const struct stat st = toy_stat(ino);

	(void)fi;
	fuse_reply_attr(req, &st, 3600);
}

static void toy_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	fi->direct_io = 1;
	fi->parallel_direct_writes = 1;
	fuse_reply_open(req, fi);
}

static void toy_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	const struct request r = {.req = req, .len_bytes = size, .off = off};

	(void)ino;
	(void)fi;
	serve(&r);
}

static void toy_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		      struct fuse_file_info *fi)
{
	const struct request r = {.req = req, .data = buf, .len_bytes = size, .off = off};

	(void)ino;
	(void)fi;
	serve(&r);
}

static const struct fuse_lowlevel_ops toy_ops = {
	.init = toy_init,
	.lookup = toy_lookup,
	.getattr = toy_getattr,
	.open = toy_open,
	.read = toy_read,
	.write = toy_write,
};

/*
 * Repliers must outlive the session's loop, which waits for the replies that they still owe, and be
 * gone before the session is destroyed, which every reply refers to.
 */
static int server_main(const char *mountpoint, int use_ring, uint64_t seed)
{
	char *argv[] = {
		(char *)"fuse_uring_stress", (char *)"-o",
		(char *)(use_ring ? "fsname=stress,io_uring,io_uring_q_depth=8" : "fsname=stress"),
		NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	pthread_t repliers[N_REPLIERS];
	struct fuse_session *se;
	int res;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	server.bytes = calloc(1, FILE_BYTES);
	server.seed = seed;
	se = fuse_session_new(&args, &toy_ops, sizeof(toy_ops), NULL);
	if (!se || !config || !server.bytes || fuse_session_mount(se, mountpoint) != 0)
		return EXIT_FAILURE;

	for (int i = 0; i < N_REPLIERS; i++)
		pthread_create(&repliers[i], NULL, replier_main, NULL);
	res = fuse_session_loop_mt(se, config);

	pthread_mutex_lock(&server.lock);
	server.closing = 1;
	pthread_cond_broadcast(&server.wake);
	pthread_mutex_unlock(&server.lock);
	for (int i = 0; i < N_REPLIERS; i++)
		pthread_join(repliers[i], NULL);

	fuse_session_unmount(se);
	fuse_session_destroy(se);
	fuse_loop_cfg_destroy(config);
	fuse_opt_free_args(&args);
	free(server.bytes);
	if (res != 0 && !atomic_load(&shared->aborting)) {
		fprintf(stderr, "server: the session's loop ended with %d\n", res);
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

/* ---- clients ------------------------------------------------------------------------------ */

struct client {
	int no;
	int fd;
	uint64_t rng;
	char *buf;
	uint64_t generation[REGION_BLOCKS]; /* of each block's last write; 0: still zeroes */
};

static uint64_t expected_word(const struct client *c, int block, int word)
{
	uint64_t state;

	if (c->generation[block] == 0)
		return 0;
	state = rng_seeded(c->generation[block], (uint64_t)(c->no * REGION_BLOCKS + block));
	return rng_next(&state) + (uint64_t)word;
}

static void fill(const struct client *c, int first, int n)
{
	uint64_t *words = (uint64_t *)(void *)c->buf;

	for (int b = 0; b < n; b++) {
		const uint64_t base = expected_word(c, first + b, 0);

		for (int w = 0; w < BLOCK_BYTES / 8; w++)
			*words++ = base + (uint64_t)w;
	}
}

static int verify(const struct client *c, int first, int n)
{
	const uint64_t *words = (const uint64_t *)(const void *)c->buf;

	for (int b = 0; b < n; b++) {
		const uint64_t base = expected_word(c, first + b, 0);
		const uint64_t step = c->generation[first + b] ? 1 : 0;

		for (int w = 0; w < BLOCK_BYTES / 8; w++, words++) {
			if (*words != base + step * (uint64_t)w) {
				fprintf(stderr,
					"client %d: block %d word %d: %016lx, expected %016lx\n",
					c->no, first + b, w, *words, base + step * (uint64_t)w);
				return -EIO;
			}
		}
	}
	return 0;
}

/* One random read or write of 1 to MAX_IO_BLOCKS blocks; most are of one, as that races most. */
static int client_step(struct client *c)
{
	const uint64_t r = rng_next(&c->rng) >> 16;
	const int n = r % 4 ? 1 : 1 + (int)(r / 4 % MAX_IO_BLOCKS);
	const int first = (int)(r / 64 % (uint64_t)(REGION_BLOCKS - n + 1));
	const off_t off = ((off_t)c->no * REGION_BLOCKS + first) * BLOCK_BYTES;
	const size_t len_bytes = (size_t)n * BLOCK_BYTES;
	const int write = (r >> 40) & 1;
	ssize_t done;

	if (write) {
		for (int b = 0; b < n; b++)
			c->generation[first + b]++;
		fill(c, first, n);
		done = pwrite(c->fd, c->buf, len_bytes, off);
	} else {
		done = pread(c->fd, c->buf, len_bytes, off);
	}
	if (done != (ssize_t)len_bytes) {
		if (!atomic_load(&shared->aborting))
			fprintf(stderr, "client %d: %s of %zu bytes: %zd (%s)\n", c->no,
				write ? "write" : "read", len_bytes, done,
				done < 0 ? strerror(errno) : "short");
		return -EIO;
	}
	return write ? 0 : verify(c, first, n);
}

static void *client_main(void *arg)
{
	struct client *c = arg;
	int err = 0;

	while (!atomic_load(&shared->stop) && !err) {
		err = client_step(c);
		atomic_fetch_add(&shared->progress[c->no], 1);
	}
	return err && !atomic_load(&shared->aborting) ? c : NULL;
}

static int client_process_main(const char *mountpoint, int proc, uint64_t seed)
{
	static struct client clients[THREADS_PER_PROC];
	pthread_t threads[THREADS_PER_PROC];
	char path[256];
	int failed = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "%s/" FILE_NAME, mountpoint);
	for (int i = 0; i < THREADS_PER_PROC; i++) {
		struct client *c = &clients[i];

		c->no = proc * THREADS_PER_PROC + i;
		c->rng = rng_seeded(seed, (uint64_t)c->no);
		c->fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
		c->buf = aligned_alloc(BLOCK_BYTES, (size_t)MAX_IO_BLOCKS * BLOCK_BYTES);
		if (c->fd < 0 || !c->buf) {
			fprintf(stderr, "client %d: open %s: %s\n", c->no, path, strerror(errno));
			return EXIT_FAILURE;
		}
	}
	for (int i = 0; i < THREADS_PER_PROC; i++)
		pthread_create(&threads[i], NULL, client_main, &clients[i]);
	for (int i = 0; i < THREADS_PER_PROC; i++) {
		void *ret;

		pthread_join(threads[i], &ret);
		failed |= ret != NULL;
	}
	for (int i = 0; i < THREADS_PER_PROC; i++) {
		close(clients[i].fd);
		free(clients[i].buf);
	}
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- parent: rounds and watchdog ----------------------------------------------------------- */

struct round {
	const char *mountpoint;
	int use_ring;
	int abort; /* end by aborting the connection instead of unmounting */
	int seconds;
	uint64_t seed;
	pid_t server;
	pid_t clients[N_PROCS];
};

/* Returns a child's exit status, or -ETIMEDOUT when it is still there after timeout_ms. */
static int reap(pid_t pid, uint64_t timeout_ms)
{
	const uint64_t end = now_ms() + timeout_ms;

	for (;;) {
		int status;

		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		if (now_ms() >= end)
			return -ETIMEDOUT;
		sleep_us(2000);
	}
}

/* Watch until the time is up. Returns the client that has stalled, or -1. */
static int watch(int seconds)
{
	const uint64_t end = now_ms() + (uint64_t)seconds * 1000;
	uint64_t seen[N_CLIENTS] = {0}, since_ms[N_CLIENTS];

	for (int i = 0; i < N_CLIENTS; i++)
		since_ms[i] = now_ms();
	while (now_ms() < end) {
		sleep_us(50000);
		for (int i = 0; i < N_CLIENTS; i++) {
			const uint64_t n = atomic_load(&shared->progress[i]);

			if (n != seen[i]) {
				seen[i] = n;
				since_ms[i] = now_ms();
			} else if (now_ms() - since_ms[i] >= STALL_MS) {
				return i;
			}
		}
	}
	return -1;
}

static void kill_all(struct round *r)
{
	kill(r->server, SIGKILL);
	for (int i = 0; i < N_PROCS; i++)
		kill(r->clients[i], SIGKILL);
	umount2(r->mountpoint, MNT_DETACH);
	reap(r->server, STALL_MS);
	for (int i = 0; i < N_PROCS; i++)
		reap(r->clients[i], STALL_MS);
}

static int fail(struct round *r, const char *why, int detail)
{
	printf("FAILED: %s (%d)\n", why, detail);
	kill_all(r);
	return -1;
}

static int start_server(struct round *r)
{
	memset(shared, 0, sizeof(*shared));
	fflush(stdout);
	r->server = fork();
	if (r->server == 0)
		_exit(server_main(r->mountpoint, r->use_ring, r->seed));
	for (int i = 0; i < STALL_MS && !atomic_load(&shared->ready); i++) {
		if (waitpid(r->server, NULL, WNOHANG) == r->server)
			return -1;
		sleep_us(1000);
	}
	return atomic_load(&shared->ready) ? 0 : -1;
}

static int unmount(const char *mountpoint)
{
	/* The kernel may still hold the file for a moment after the last close. */
	for (int i = 0; i < 200; i++) {
		if (umount2(mountpoint, 0) == 0)
			return 0;
		if (errno == EPERM)
			return -EPERM;
		sleep_us(10000);
	}
	return -EBUSY;
}

static int run_round(struct round *r)
{
	uint64_t ops = 0;
	int stalled, err;

	if (start_server(r) != 0)
		return fail(r, "the server did not start", 0);
	for (int i = 0; i < N_PROCS; i++) {
		r->clients[i] = fork();
		if (r->clients[i] == 0)
			_exit(client_process_main(r->mountpoint, i, r->seed));
	}

	stalled = watch(r->seconds);
	if (stalled >= 0)
		return fail(r, "a request was never answered, client", stalled);

	if (r->abort) {
		atomic_store(&shared->aborting, 1);
		umount2(r->mountpoint, MNT_FORCE | MNT_DETACH);
	} else {
		atomic_store(&shared->stop, 1);
	}
	for (int i = 0; i < N_PROCS; i++) {
		err = reap(r->clients[i], STALL_MS);
		if (err)
			return fail(r, "a client ended with", err);
	}
	if (!r->abort) {
		err = unmount(r->mountpoint);
		if (err)
			return fail(r, "unmount", err);
	}
	err = reap(r->server, STALL_MS);
	if (err)
		return fail(r, "the server ended with", err);

	for (int i = 0; i < N_CLIENTS; i++)
		ops += atomic_load(&shared->progress[i]);
	printf("ok: %lu operations, %lu by io_uring, %lu by /dev/fuse, %lu handed over%s\n", ops,
	       atomic_load(&shared->by_ring), atomic_load(&shared->by_dev),
	       atomic_load(&shared->handed_over), r->abort ? ", ended by an abort" : "");
	if (r->use_ring != (atomic_load(&shared->by_ring) > 0)) {
		printf("FAILED: the requests came by the wrong transport\n");
		return -1;
	}
	return 0;
}

static void skip(const char *why)
{
	printf("SKIPPED: %s\n", why);
	exit(EXIT_SKIP);
}

static void require_ring(void)
{
	static const char path[] = "/sys/module/fuse/parameters/enable_uring";
	char value = 'N';
	int fd;

	if (access(path, F_OK) != 0)
		skip("this kernel has no FUSE over io_uring (Linux >= 6.14 with "
		     "CONFIG_FUSE_IO_URING)");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (write(fd, "Y", 1) != 1)
			perror(path);
		close(fd);
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, &value, 1) != 1 || value != 'Y')
		skip("FUSE over io_uring is off, and only root may set "
		     "/sys/module/fuse/parameters/enable_uring");
	close(fd);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"transport", required_argument, NULL, 't'},
		{"rounds", required_argument, NULL, 'r'},
		{"seconds", required_argument, NULL, 's'},
		{"seed", required_argument, NULL, 'S'},
		{NULL, 0, NULL, 0},
	};
	char mountpoint[] = "/tmp/fuse_uring_stress.XXXXXX";
	struct round r = {.mountpoint = mountpoint, .use_ring = 1, .seconds = 6, .seed = now_ms()};
	int rounds = 3, opt, err = 0;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 't':
			r.use_ring = strcmp(optarg, "dev") != 0;
			break;
		case 'r':
			rounds = atoi(optarg);
			break;
		case 's':
			r.seconds = atoi(optarg);
			break;
		case 'S':
			r.seed = strtoull(optarg, NULL, 0);
			break;
		default:
			return EXIT_FAILURE;
		}
	}

	if (access("/dev/fuse", R_OK | W_OK) != 0)
		skip("/dev/fuse is not there, or not for us");
	if (geteuid() != 0)
		skip("mounting and unmounting needs root");
	if (r.use_ring)
		require_ring();

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED || !mkdtemp(mountpoint)) {
		perror("fuse_uring_stress");
		return EXIT_FAILURE;
	}
	for (int i = 0; i < rounds && !err; i++, r.seed++) {
		r.abort = rounds > 1 && i == rounds - 1;
		printf("round %d, %s, --seed=%lu\n", i + 1, r.use_ring ? "io_uring" : "/dev/fuse",
		       r.seed);
		err = run_round(&r);
	}
	rmdir(mountpoint);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
