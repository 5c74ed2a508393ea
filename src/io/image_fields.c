/* SPDX-License-Identifier: MIT */
/* The field tables of an image's trailer. */
#include "io/image_format.h"

ZF_FIELDS_DEFINE(zf_image_header_fields, struct zf_image_header, ZF_IMAGE_HEADER_FIELDS,
		 "zf_image_header");
ZF_FIELDS_DEFINE(zf_image_state_fields, struct zf_image_state, ZF_IMAGE_STATE_FIELDS,
		 "zf_image_state");
ZF_FIELDS_DEFINE(zf_image_slot_fields, struct zf_image_slot, ZF_IMAGE_SLOT_FIELDS, "zf_image_slot");
