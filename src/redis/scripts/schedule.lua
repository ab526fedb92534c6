-- SCHEDULE. Items of four:
--
--     id
--     how        three letters: the due is now, in some ms or at a time (n, i, a); the conflict
--                policy (a digit); p: plain, the timer does not expire and is no plan; x: any
--                other. Then the priority, a byte; of a plan, after it when the plan was created
--                (its times are computed from that, so it must be the time from which the caller
--                has computed the first one), its state and its rule
--     ms         of the due, by the first letter
--     record     from the expiry on, which is 0
--
-- Each result is 1 (stored), 'kept', 'taken' or 'full'; 'all' alone stands for 1 of each. Plain
-- timers are stored at once, if all are new.

local ARGS = 4
local LETTER_P = 112
local OWN_BYTES = 22 -- of a head, which the script writes
local HEAD_REST = '>i7I7I7I4B' -- the rest

-- Returns whether the topic has as many unfinished timers as its depth. The entries that mean
-- nothing do not count.
local function is_full()
    if cfg.depth == 0 then return false end
    local count = call('ZCARD', PEND) + call('ZCARD', LEASE) + call('ZCARD', BLOCK) - 3
    return count - cfg.resting >= cfg.depth
end

-- Stores a new timer or plan.
local function store(id, r, plan)
    write_record(id, r)
    if r.kind == A_PLAN then
        local a = read_att(id)
        a.result = plan
        return place_plan(id, r, a, read_plan(a))
    end
    pend(id, r)
    if is_expired(r) then expire(id) end
end

local function schedule(at) -- rare
    local id, how, first = ARGV[at], ARGV[at + 1], string.sub(ARGV[at + 1], 4)
    local due = due_of(how, tonumber(ARGV[at + 2]))
    local old, state = look(id)
    local stays = old and stay(id, old, state, how, due)
    if stays then return stays end
    local r = {due = due, created = now, bytes = string.rep('\0', OWN_BYTES) .. ARGV[at + 3]}
    r.expiry, r.expires, r.lease, r.load, r.kind = struct.unpack(HEAD_REST, ARGV[at + 3])
    local replaces = old and state < DONE and old.kind ~= A_PLAN
    if r.kind ~= A_PLAN and not replaces and is_full() then return 'full' end
    if old then drop(id, old, state) end
    r.prefix = make_prefix(string.byte(first), take_sequence())
    if r.kind == A_PLAN then r.created = struct.unpack('>i7', first, 2) end
    if r.expires > 0 then r.expiry = due + r.expires end
    store(id, r, string.sub(first, 9))
    return 1
end

local is_deep = stored[DEPTH_N] and stored[DEPTH_N] ~= '0'
if is_deep and not is_swept then return again() end -- it counts no timer that has expired
if not is_known then birth() end

-- Whether all items are plain timers with ids of which there is no record. Of one alone, HSETNX
-- tells, which does nothing if there is a record.
local byte, sub, pack, floor = string.byte, string.sub, struct.pack, math.floor
local count, is_plain = (#ARGV - 1) / ARGS, not is_deep
if count > 1 and is_plain then
    local ids, seen = {}, {}
    for i = 1, count do
        local id = ARGV[ARGS * i - 2]
        if seen[id] or byte(ARGV[ARGS * i - 1], 3) ~= LETTER_P then is_plain = false end
        seen[id], ids[i] = true, id
    end
    local records = is_plain and call('HMGET', REC, unpack(ids)) or {}
    for i = 1, #records do
        if records[i] then is_plain = false end
    end
end
if count == 1 and byte(ARGV[3], 3) ~= LETTER_P then is_plain = false end

-- Stores all plain timers at once.
if is_plain then
    call('ZCARD', PEND)
    call('HLEN', HOUR)
    if bound <= now then call('ZCARD', PLAN) end
end
local records, members, results = {}, {}, {0, 0, 0}
for i = 1, is_plain and count or 0 do
    local at = ARGS * i - 2
    local id, how, text = ARGV[at], ARGV[at + 1], ARGV[at + 2]
    local due, when, priority = tonumber(text), byte(how), sub(how, 4, 4)
    if when ~= LETTER_A then
        due = when == LETTER_I and now + due or now
        text = due
    end
    local own = pack('>I7i7i7', sequence + sequences + i, due, now)
    local record = priority .. own .. ARGV[at + 3]
    if count == 1 and call('HSETNX', REC, id, record) == 0 then
        is_plain = false
        break
    end
    records[2 * i - 1], records[2 * i] = id, record
    members[2 * i - 1], members[2 * i] = text, priority .. sub(own, 1, 7) .. id
    local hour = floor(due / HOUR_MS)
    hours[hour] = (hours[hour] or 0) + 1
    if due <= now then
        has_ready = true
    elseif due < earliest then
        earliest = due
    end
end
if is_plain then
    if count > 1 then call('HSET', REC, unpack(records)) end
    call('ZADD', PEND, unpack(members))
    sequences = sequences + count
    results[4] = 'all'
end
for at = 2, is_plain and 0 or #ARGV, ARGS do
    results[#results + 1] = schedule(at)
end
return conclude(results)
