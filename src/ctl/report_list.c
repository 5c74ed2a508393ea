/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "ctl/json.h"
#include "ctl/report.h"

static int begin_part(struct zf_report_list *list)
{
	list->count = 0;
	list->array = json_object_new_array();
	list->result = json_object_new_object();
	if (list->array && list->result)
		return 0;
	json_object_put(list->array);
	json_object_put(list->result);
	list->array = list->result = NULL;
	return -ENOMEM;
}

int zf_report_list_begin(struct zf_report_list *list, const struct zf_report_source *source,
			 const char *name, unsigned int part_max)
{
	*list = (struct zf_report_list){
		.parts = source->parts,
		.name = name,
		.part_max = part_max,
	};
	return begin_part(list);
}

int zf_report_list_push(struct zf_report_list *list, struct json_object *element)
{
	struct json_object *part;
	int r;

	if (!element)
		return -ENOMEM;
	zf_json_push(list->array, element);
	if (++list->count < list->part_max || !list->parts)
		return 0;
	zf_report_list_end(list, &part);
	r = list->parts->take(list->parts->arg, part);
	json_object_put(part);
	return r < 0 ? r : begin_part(list);
}

void zf_report_list_end(struct zf_report_list *list, struct json_object **ret_result)
{
	zf_json_add(list->result, list->name, list->array);
	*ret_result = list->result;
	list->array = list->result = NULL;
}

void zf_report_list_drop(struct zf_report_list *list)
{
	json_object_put(list->array);
	json_object_put(list->result);
	list->array = list->result = NULL;
}
