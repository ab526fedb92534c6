/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_JOB_FILE_H
#define BEL_CLI_JOB_FILE_H

/*
 * job_file - the text of a job from a file: JSON as it is, or made from lines in the style of make.
 */

#include "belfry/job_builder.h"
#include "belfry/view.h"

struct cli_job_file {
    const char *path;                /* "-": standard input */
    const char *topic;               /* of all tasks; NULL: the file is JSON */
    const char *id;                  /* of the job, for lines; NULL: none */
    struct bel_view text;            /* out: JSON */
    char *data;                      /* private */
    struct bel_job_builder *builder; /* private; NULL: the file is JSON */
};

/* Returns the name of a file in messages. */
const char *bel__job_file_name(const char *path);

/* Reads the file and sets `text`, which lives as long as the file. Returns CLI_OK, or an exit
 * status after printing an error. Call bel__job_file_finish() in either case. */
int bel__job_file_read(struct cli_job_file *file);
void bel__job_file_finish(struct cli_job_file *file);

#endif
