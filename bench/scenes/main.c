/* SPDX-License-Identifier: MIT */
/*
 * scenes tree IMAGE FILES
 * scenes change IMAGE
 * scenes record IMAGE
 * scenes life
 * scenes map
 * scenes burst
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenes.h"

int main(int argc, char **argv)
{
	const char *scene = argc > 1 ? argv[1] : "";

	if (argc == 4 && strcmp(scene, "tree") == 0)
		scene_tree(argv[2], (unsigned int)atoi(argv[3]));
	else if (argc == 3 && strcmp(scene, "change") == 0)
		scene_change(argv[2]);
	else if (argc == 3 && strcmp(scene, "record") == 0)
		scene_record(argv[2]);
	else if (argc == 2 && strcmp(scene, "life") == 0)
		scene_life();
	else if (argc == 2 && strcmp(scene, "map") == 0)
		scene_map();
	else if (argc == 2 && strcmp(scene, "burst") == 0)
		scene_burst();
	else
		return 2;
	return 0;
}
