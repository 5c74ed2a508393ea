/* SPDX-License-Identifier: MIT */
/* The device over an image: what the files of the backend share. Life: image.c. */
#ifndef ZF_IO_IMAGE_DEVICE_H
#define ZF_IO_IMAGE_DEVICE_H

#include "base/bits.h"
#include "base/plant.h"
#include "io/command.h"
#include "io/dev_ops.h"
#include "io/image_trailer.h"
#include "io/ring.h"
#include "io/zone_rules.h"

/* Enough for the log's next zone while one is being filled. */
#define ZF_IMAGE_KEPT_MAX      2

#define ZF_IMAGE_IN_FLIGHT_MAX 256

/* Zeroes are written from one buffer, named again and again in a vector. */
#define ZF_IMAGE_ZERO_CHUNK  ((uint64_t)64 * 1024)
#define ZF_IMAGE_ZERO_CHUNKS 64

enum zf_image_step {
	ZF_IMAGE_STEP_TRANSFER,
	ZF_IMAGE_STEP_UNMAP, /* zeroes, without writing them */
	ZF_IMAGE_STEP_FLUSH,
	ZF_IMAGE_STEP_RESET_SYNC,  /* make the trailer durable, before the zone is written again */
	ZF_IMAGE_STEP_RESET_PUNCH, /* give the zone's space back to the host */
	ZF_IMAGE_STEP_DONE,	   /* carried out already: a no-op carries the result */
	ZF_IMAGE_STEP_REFUSED,	   /* never began: a no-op carries the result */
};

struct zf_image_command {
	struct zf_command base;
	enum zf_image_step step;
	int result;		     /* ZF_IMAGE_STEP_DONE, ZF_IMAGE_STEP_REFUSED */
	struct zf_zone_state before; /* ZF_IMAGE_STEP_RESET_*: restored if the reset fails */
	struct iovec last_zeroes;    /* the last, smaller piece of ZEROES */
};

struct zf_image_zone_busy {
	uint32_t writes; /* in flight: a reset must not begin meanwhile */
	bool resetting;
	bool kept;	   /* empty, but still has bytes on the host: image_zones.c */
	bool looked;	   /* warm_end is known */
	bool warming;	   /* in the queue of the warmer */
	bool again;	   /* requested again since the warmer's round of it began */
	uint64_t warm_end; /* bytes from its start: up to here, space is written on the host */
};

#define ZF_IMAGE_WARM_QUEUE 8

/* The thread that writes zeroes ahead of pointers: image_warm.c. All under the image's lock. */
struct zf_image_warmer {
	pthread_t thread;
	bool started, stopping;
	bool off;	       /* nothing is written ahead, or not any more */
	uint64_t ask_ms;       /* the host was short of space, and is not asked before */
	struct zf_cond wanted; /* signalled for a new zone in the queue, and for stopping */
	struct zf_cond landed; /* signalled when the piece in flight has landed */
	uint32_t zone_no;      /* the zone of that piece */
	uint64_t from, to;     /* bytes from the start of the zone; to = 0: none in flight */
	uint32_t queue[ZF_IMAGE_WARM_QUEUE]; /* zones; the warmer works on the first */
	unsigned int queued;
};

struct zf_image {
	struct zf_dev dev;
	int fd;
	atomic_bool read_only; /* opened so, or the zone table cannot be written any more */
	bool is_block_device;
	bool runs_here;	  /* zf_dev_run() carries out requests on the calling thread if it can */
	bool host_blocks; /* and so does zf_dev_submit(): see image_ring.c */

	struct zf_mutex lock; /* ZF_RANK_DEV: submission side of the ring, and all fields below */
	struct zf_ring ring;
	struct zf_zone_rules rules;
	struct zf_image_trailer trailer;
	struct zf_image_zone_busy *busy;
	struct zf_image_command commands[ZF_IMAGE_IN_FLIGHT_MAX];
	struct zf_command_pool pool;
	uint32_t kept_count;
	struct zf_image_warmer warmer;
	bool unmapping_refused; /* by the host: see image_unmap.c */
	bool raise_first;	/* pointers are lower bounds, and no zone was written yet */

	void *zero_chunk;
	struct iovec zeroes[ZF_IMAGE_ZERO_CHUNKS];
};

static inline struct zf_image *zf_image_of(struct zf_dev *dev)
{
	return ZF_CONTAINER_OF(dev, struct zf_image, dev);
}

/* Returns -EIO for any error of the host, and reports the error. */
int zf_image_host_error(struct zf_image *image, const char *what, uint64_t address, int error);
/*
 * The same for an operation that the host was to make durable at once. EIO may mean that the host
 * could not flush. That concerns all data in its disk's cache, and the host reports it only once,
 * so it counts as a failed flush.
 */
int zf_image_sync_error(struct zf_image *image, const char *what, uint64_t address, int error);
int zf_image_sync_error_locked(struct zf_image *image, const char *what, uint64_t address,
			       int error);

/*
 * The host has changed or lost parts of the image: the image is read-only from now on, which is
 * reported with `why`. Pointers stay as the table has them. Returns -EIO.
 */
int zf_image_give_up_locked(struct zf_image *image, const char *why);
/* The same, because the zone table cannot be written. */
int zf_image_give_up_table_locked(struct zf_image *image);
/* Turns `res`, which the host returned for a flush, into the request's result. */
int zf_image_flushed_locked(struct zf_image *image, int res);

static inline uint32_t zf_image_zone_of(const struct zf_image *image, const struct zf_io *io)
{
	return (uint32_t)(io->addr / image->dev.geometry.zone_size);
}

/* Flags for pwritev2(2), or for the same operation on the ring. */
static inline int zf_image_write_flags(const struct zf_io *io)
{
	return io->fua && !ZF_PLANTED(ZF_BUG_IMAGE_FUA) ? RWF_DSYNC : 0;
}

/* ---- image_zones.c ---- */

/* Decides on the request, assigns its address, sets the first step. */
void zf_image_begin_locked(struct zf_image *image, struct zf_image_command *command);
void zf_image_end_locked(struct zf_image *image, const struct zf_image_command *command);

/*
 * ZF_IMAGE_STEP_RESET_SYNC has returned `res`. Returns the reset's result, or ZF_COMMAND_AGAIN: the
 * next step is set.
 */
int zf_image_reset_synced_locked(struct zf_image *image, struct zf_image_command *command, int res);

/* At open: finds the empty zones that the last owner left written. */
void zf_image_find_kept(struct zf_image *image);

/* ---- image_warm.c ---- */

/* init after fd and read_only are set; stop, which may be called once, before deinit. */
void zf_image_warmer_init(struct zf_image *image, bool is_block_device);
void zf_image_warmer_stop(struct zf_image *image);
void zf_image_warmer_deinit(struct zf_image *image);

/* Bytes from the zone's start: how far the space from `wp` on is written, 0 if unknown. */
uint64_t zf_image_warm_end(struct zf_image *image, uint32_t zone_no, uint64_t wp);

/* A write has begun: if it is small and durable, and little written space is left, writes ahead. */
void zf_image_warm_after_locked(struct zf_image *image, const struct zf_io *io, uint32_t zone_no);

/*
 * Waits until no piece of zeroes is in flight in the range of the request, and drops the lock
 * meanwhile. Called before the request begins, and before anything is decided about it.
 */
void zf_image_await_piece_locked(struct zf_image *image, const struct zf_io *io);

/* struct zf_dev_ops */
void zf_image_warm(struct zf_dev *dev, uint32_t zone_no);

/* ---- image_grow.c: struct zf_dev_ops ---- */

int zf_image_grow(struct zf_dev *dev, uint32_t zone_count);

/* ---- image_unmap.c ---- */

/* Does the device that the image lies on zero by unmapping? */
bool zf_image_host_unmaps(int fd);
/* Is this request to be carried out by unmapping? */
bool zf_image_unmaps_locked(const struct zf_image *image, const struct zf_io *io);
/*
 * ZF_IMAGE_STEP_UNMAP has returned `res`. Returns the request's result, or ZF_COMMAND_AGAIN: the
 * next step is set.
 */
int zf_image_unmapped_locked(struct zf_image *image, struct zf_image_command *command, int res);

#define ZF_IMAGE_FALLOC_WRITE_ZEROES 0x80 /* FALLOC_FL_WRITE_ZEROES, since Linux 6.17 */

/* ---- image_here.c: on the calling thread, without a lock ---- */

bool zf_image_can_carry_out_here(const struct zf_image_command *command);
int zf_image_carry_out_here(struct zf_image *image, const struct zf_io *io);

/* struct zf_dev_ops */
int zf_image_run(struct zf_dev *dev, struct zf_io *io);
int zf_image_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov, unsigned int iovcnt);

/* ---- image_ring.c ---- */

int zf_image_ring_init(struct zf_image *image);

/* struct zf_dev_ops */
void zf_image_submit(struct zf_dev *dev, struct zf_io *io);
void zf_image_poll(struct zf_dev *dev, bool wait);
void zf_image_wake(struct zf_dev *dev);

#endif
