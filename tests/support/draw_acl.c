/* SPDX-License-Identifier: MIT */
/* Access control lists at random. */
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>

#include "support/workload.h"

static void add_entries(struct zf_rng *rng, struct oracle_acl *acl, uint16_t tag, uint64_t n)
{
	bool named = tag == ACL_USER || tag == ACL_GROUP;

	for (uint64_t i = 0; i < n; i++)
		acl->entries[acl->count++] = (struct oracle_acl_entry){
			.tag = tag,
			.permissions = (uint16_t)zf_rng_below(rng, 8),
			.id = named ? 100 * (uint32_t)(i + 1) : (uint32_t)ACL_UNDEFINED_ID};
}

/* Most of these changes make the list invalid; the oracle decides which. */
static void spoil(struct zf_rng *rng, struct oracle_acl *acl)
{
	struct oracle_acl_entry *entry = &acl->entries[zf_rng_below(rng, acl->count)], other;

	switch (zf_rng_below(rng, 6)) {
	case 0:
		acl->version = (uint32_t)zf_rng_below(rng, 4);
		break;
	case 1:
		entry->tag = (uint16_t)zf_rng_below(rng, 2 * ACL_OTHER);
		break;
	case 2:
		entry->permissions = (uint16_t)zf_rng_below(rng, 32);
		break;
	case 3:
		entry->id = (uint32_t)ACL_UNDEFINED_ID;
		break;
	case 4: /* one too few */
		*entry = acl->entries[--acl->count];
		break;
	default: /* in the wrong order */
		other = *entry;
		*entry = acl->entries[0];
		acl->entries[0] = other;
	}
}

/* Some lists say no more than a mode does, or add only a mask. */
void workload_draw_acl(struct zf_rng *rng, struct oracle_acl *ret_acl)
{
	uint64_t users = zf_rng_chance(rng, 50) ? zf_rng_below(rng, 3) : 0;
	uint64_t groups = zf_rng_chance(rng, 50) ? zf_rng_below(rng, 3) : 0;

	*ret_acl = (struct oracle_acl){.version = POSIX_ACL_XATTR_VERSION};
	add_entries(rng, ret_acl, ACL_USER_OBJ, 1);
	add_entries(rng, ret_acl, ACL_USER, users);
	add_entries(rng, ret_acl, ACL_GROUP_OBJ, 1);
	add_entries(rng, ret_acl, ACL_GROUP, groups);
	add_entries(rng, ret_acl, ACL_MASK, users + groups > 0 || zf_rng_chance(rng, 30));
	add_entries(rng, ret_acl, ACL_OTHER, 1);
	if (zf_rng_chance(rng, 15))
		spoil(rng, ret_acl);
}
