/* SPDX-License-Identifier: MIT */
#include "fs/ops/chain.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fs/core/item_check.h"

int zf_chain_load(struct zf_fs *fs, const struct zf_key *key, struct zf_chain *ret_chain)
{
	size_t len;
	int r;

	r = zf_tree_lookup(fs->forest, ZF_TREE_FS, key, ret_chain->bytes, sizeof(ret_chain->bytes),
			   &len);
	if (r == -ENOENT)
		len = 0;
	else if (r < 0)
		return r;
	else
		r = zf_fs_check_item(fs, key, ret_chain->bytes, len);
	if (r < 0 && r != -ENOENT)
		return r;
	ret_chain->key = *key;
	ret_chain->len = len;
	return 0;
}

int zf_chain_store(struct zf_op *op, const struct zf_chain *chain)
{
	if (chain->len == 0)
		return zf_op_delete(op, &chain->key);
	return zf_op_set(op, &chain->key, chain->bytes, chain->len);
}

bool zf_chain_has_room(const struct zf_fs *fs, const struct zf_chain *chain, size_t entry_len)
{
	return chain->len + entry_len <= zf_node_value_max(fs->super.node_size);
}

void *zf_chain_append(struct zf_chain *chain, size_t entry_len)
{
	void *entry = chain->bytes + chain->len;

	assert(entry_len <= sizeof(chain->bytes) - chain->len);
	chain->len += entry_len;
	return entry;
}

void zf_chain_remove(struct zf_chain *chain, size_t at, size_t entry_len)
{
	assert(at + entry_len <= chain->len);
	memmove(chain->bytes + at, chain->bytes + at + entry_len, chain->len - at - entry_len);
	chain->len -= entry_len;
}

int zf_chain_find(const struct zf_chain *chain, const struct zf_chain_kind *kind,
		  const void *prefix, const char *name, size_t name_len, size_t *ret_at)
{
	for (size_t at = 0; at < chain->len; at += kind->entry_len(chain->bytes + at)) {
		const uint8_t *entry = chain->bytes + at;

		if (kind->name_len(entry) != name_len ||
		    memcmp(entry, prefix, kind->prefix_size) != 0 ||
		    memcmp(entry + kind->fixed_size, name, name_len) != 0)
			continue;
		*ret_at = at;
		return 0;
	}
	return -ENOENT;
}
