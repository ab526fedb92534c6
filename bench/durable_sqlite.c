/* SPDX-License-Identifier: MIT */

/*
 * SQLite as one would use it for timers: a table, an index of pending timers in the order of
 * delivery, an index of lease ends, and one of ids if users choose them; otherwise the rowid is the
 * id. One transaction per commit, each synced.
 */
#include "durable.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

const struct engine_traits engine_traits = {.name = "sqlite"};

static sqlite3 *database;
static bool ids;
static sqlite3_stmt *begin, *commit, *add, *claim, *ack;
static struct {
    int64_t number;
    uint8_t token[12];
} claimed[DURABLE_BATCH_MAX];
static size_t claimed_count;

static void must(int err)
{
    if (err == SQLITE_OK || err == SQLITE_DONE || err == SQLITE_ROW) return;
    bench_fail(database != NULL ? sqlite3_errmsg(database) : "sqlite");
}

static void execute(const char *text)
{
    must(sqlite3_exec(database, text, NULL, NULL, NULL));
}

static sqlite3_stmt *prepare(const char *text)
{
    sqlite3_stmt *statement;
    must(sqlite3_prepare_v3(database, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL));
    return statement;
}

static void step(sqlite3_stmt *statement)
{
    must(sqlite3_step(statement));
    must(sqlite3_reset(statement));
}

static const char tables[] =
    "CREATE TABLE IF NOT EXISTS timers (number INTEGER PRIMARY KEY, topic INTEGER NOT NULL,"
    " id TEXT, due INTEGER NOT NULL, priority INTEGER NOT NULL, state INTEGER NOT NULL,"
    " created INTEGER NOT NULL, attempts INTEGER NOT NULL, lease_end INTEGER, token BLOB,"
    " payload BLOB)";

static const char indexes[] =
    "CREATE INDEX IF NOT EXISTS waiting ON timers (topic, due, priority, number) WHERE state = 0;"
    "CREATE INDEX IF NOT EXISTS leased ON timers (lease_end) WHERE state = 1";

static void prepare_all(void)
{
    begin = prepare("BEGIN IMMEDIATE");
    commit = prepare("COMMIT");
    add = prepare("INSERT INTO timers VALUES (?1, 1, ?2, ?3, 128, 0, ?4, 0, NULL, NULL, ?5)");
    claim = prepare("UPDATE timers SET state = 1, lease_end = ?1, token = randomblob(12)"
                    " WHERE number IN (SELECT number FROM timers WHERE topic = 1 AND state = 0"
                    " AND due <= ?2 ORDER BY due, priority, number LIMIT ?3)"
                    " RETURNING number, token, attempts, payload");
    ack = prepare("DELETE FROM timers WHERE number = ?1 AND state = 1 AND token = ?2");
}

void durable_open(const char *folder, bool has_ids)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/timers.db", folder);
    must(sqlite3_open(path, &database));
    ids = has_ids;
    execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -262144;"
            "PRAGMA wal_autocheckpoint = 10000");
    execute(tables);
    execute(indexes);
    if (ids) execute("CREATE UNIQUE INDEX IF NOT EXISTS named ON timers (topic, id)");
    prepare_all();
}

void durable_close(void)
{
    sqlite3_stmt *const all[] = {begin, commit, add, claim, ack};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        (void)sqlite3_finalize(all[i]);
    }
    must(sqlite3_close(database));
}

void durable_load_begin(void)
{
    execute("DROP INDEX waiting; PRAGMA synchronous = OFF");
}

void durable_load_end(void)
{
    execute(indexes);
    execute("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA synchronous = FULL");
}

void durable_rest(void)
{
}

void durable_schedule(const struct durable_timer *timers, size_t count)
{
    int64_t now = durable_now_ms();
    char id[DURABLE_ID_BYTES];
    step(begin);
    for (size_t i = 0; i < count; i++) {
        must(sqlite3_bind_int64(add, 1, (int64_t)timers[i].number));
        if (ids) {
            durable_print_id(timers[i].number, id);
            must(sqlite3_bind_text(add, 2, id, sizeof id, SQLITE_STATIC));
        }
        must(sqlite3_bind_int64(add, 3, timers[i].due_ms > 0 ? timers[i].due_ms : now));
        must(sqlite3_bind_int64(add, 4, now));
        must(sqlite3_bind_blob(add, 5, durable_payload, sizeof durable_payload, SQLITE_STATIC));
        step(add);
    }
    step(commit);
}

size_t durable_claim(size_t count)
{
    int64_t now = durable_now_ms();
    claimed_count = 0;
    step(begin);
    must(sqlite3_bind_int64(claim, 1, now + DURABLE_LEASE_MS));
    must(sqlite3_bind_int64(claim, 2, now));
    must(sqlite3_bind_int64(claim, 3, (int64_t)count));
    while (sqlite3_step(claim) == SQLITE_ROW) {
        claimed[claimed_count].number = sqlite3_column_int64(claim, 0);
        memcpy(claimed[claimed_count].token, sqlite3_column_blob(claim, 1), 12);
        if (sqlite3_column_bytes(claim, 3) != DURABLE_PAYLOAD_BYTES) bench_fail("wrong payload");
        claimed_count++;
    }
    must(sqlite3_reset(claim));
    step(commit);
    return claimed_count;
}

void durable_ack(void)
{
    step(begin);
    for (size_t i = 0; i < claimed_count; i++) {
        must(sqlite3_bind_int64(ack, 1, claimed[i].number));
        must(sqlite3_bind_blob(ack, 2, claimed[i].token, 12, SQLITE_STATIC));
        step(ack);
        if (sqlite3_changes(database) != 1) bench_fail("a lease expired during the benchmark");
    }
    step(commit);
}
