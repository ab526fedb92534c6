/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_BUG_H
#define BEL_CORE_BUG_H

/*
 * bug - bugs that are planted for the simulator to find (tests/sim): in a build of its own one
 * of them is switched on, in every other there are none, and BEL_BUG(n) is the constant 0.
 *
 *     if (BEL_BUG(BEL_BUG_TOKEN)) ...      does the wrong thing
 */

enum bel_bug {
    BEL_BUG_NONE,
    BEL_BUG_ANSWER_BEFORE_SYNC,
    BEL_BUG_SYNC_IGNORED,
    BEL_BUG_DELETE_NOT_LOGGED, /* so that what was cancelled comes back */
    BEL_BUG_TOKEN_NOT_CHECKED,
    BEL_BUG_EARLY,      /* by a millisecond */
    BEL_BUG_STALE_TAIL, /* of an earlier use of a segment */
    BEL_BUG_ATTEMPT_NOT_KEPT,
    BEL_BUG_OCCURRENCE_TWICE,
    BEL_BUG_TIES,            /* in priority */
    BEL_BUG_LEASE_NOT_ARMED, /* when it is opened */
    BEL_BUG_LEASE_ROW_LEFT,
    BEL_BUG_SEQUENCE_NOT_KEPT,
    BEL_BUG_CRASH_TWICE,    /* counted */
    BEL_BUG_EPOCH_EARLY,    /* before all of the delta is in the tree */
    BEL_BUG_TOMBSTONE_LOST, /* on its way into the tree */
    BEL_BUG_EXTEND_NOT_LOGGED,
    BEL_BUG_COUNT_NOT_KEPT,
    BEL_BUG_NEW_AFTER_REPLAY, /* as if the tree could not have the row */
    BEL_BUG_PAUSE_NOT_KEPT,
    BEL_BUG_WAKE_FORGOTTEN,
    BEL_BUG_FROZEN_IGNORED, /* what is gone is read below a delta that is on its way */
    BEL_BUG_NO_GRACE,       /* leases that ended while it was closed count as crashes */
    BEL_BUG_REPLY_EARLY,    /* a session answers when it has heard the command */
    BEL_BUG_REPLY_OVERTAKES,
    BEL_BUG_REPLY_AGAIN,        /* what was said before is said once more */
    BEL_BUG_REPLY_VERSION,      /* the one that is spoken now, not when it was asked */
    BEL_BUG_MAP_SIZE,           /* twice too large, in version 3 */
    BEL_BUG_NOT_TAKEN_BACK,     /* what a client was given that has hung up meanwhile */
    BEL_BUG_ONE_TAKEN_BACK,     /* of several */
    BEL_BUG_WRITTEN_IN_PART,    /* counts as written, if little is left */
    BEL_BUG_WAIT_HOLDS_NOTHING, /* back: commands overtake a claim that waits */
    BEL_BUG_WAITS_ON,           /* for a client that has hung up */
    BEL_BUG_PAGE_SKIPS,         /* the first of what a cursor says */
    BEL_BUG_ZONE_NOT_KEPT,
    BEL_BUG_SPACE_FORGOTTEN,  /* when there is some again */
    BEL_BUG_TRANSACTION_DONE, /* of which it was said that there are none */
    BEL_BUGS,
};

#ifdef BEL_PLANTED_BUGS
extern int bel__planted_bug;
#    define BEL_BUG(bug) (bel__planted_bug == (bug))
#else
#    define BEL_BUG(bug) 0
#endif

#endif
