-- prelude - what every script has in common. It stands in front of each body.
--
-- A script is one transition of one partition of a topic. One that is called for another number of
-- partitions than the topic has does nothing (MOVED). It reads the time once, ends what is past
-- (sweep), checks everything, then writes, and replies {now, next, ring, ...}: the time it used,
-- when something happens next in the partition, and when a plan rings next (-1: never), all in ms.
-- It ends SWEEP_MAX rows at most. A script that needs all of them ended does nothing more while
-- there are others (again), and the node calls it again.
--
-- A timer is a record in `rec` and a member in exactly one sorted set:
--
--     pend   score due         scheduled, or ready if the score is not after now
--     lease  score lease end   leased; `tok` has the token and what the claim said
--     block  score 0           blocked; also a plan that has no next time now
--     plan   score next ring   a plan: a node computes its times, and calls the script ring
--     done dead cancelled expired skipped      score finished; `att` has the state
--
-- A member is priority u8, sequence u56, id; in `block` and the ends the priority is 0, because
-- these are in the order of the sequence alone. A record is a head (HEAD) and a body that only C
-- reads. `att` has what the life of a timer has left: attempts, crashes, outcomes, how it ended; of
-- a plan it has, in place of the result, its state (PLAN_STATE) and its rule, which only C reads.
-- `occ` has the unfinished occurrences of all plans: r (runs) or b (blocked) and the id.
--
-- A script is left without what it does not use; functions that are marked as rare are created when
-- the first of them is called (shake.py). Every call creates the others anew.
--
-- Every sorted set and hash has one entry of 65 bytes that means nothing: the key exists from the
-- birth of the partition on, and is never stored as a list that each lookup would scan.

local PEND = KEYS[1]
local LEASE = KEYS[2]
local REC = KEYS[3]
local TOK = KEYS[4]
local ATT = KEYS[5]
local EXP = KEYS[6]
local PLAN = KEYS[7]
local HOUR = KEYS[8]
local BLOCK = KEYS[9]
local CFG = KEYS[10]
local ST = KEYS[11]
local ENDS = {[4] = KEYS[12], [5] = KEYS[13], [6] = KEYS[14], [7] = KEYS[15], [8] = KEYS[16]}
local OCC = KEYS[17]
local SCHEDULED, READY, LEASED, BLOCKED, DONE, DEAD, CANCELLED, EXPIRED, SKIPPED =
    0, 1, 2, 3, 4, 5, 6, 7, 8
local HEAD = '>c8i7i7i7I7I7I4B' -- prefix, due, created, expiry, expires, lease, load, kind
local HEAD_BYTES = 48
local TIMER, A_PLAN, OCCURRENCE = 0, 1, 2 -- kinds
local ATT_HEAD = '>Bi7I4I4' -- state (0: not ended), finished, attempts, crashes
local TOK_HEAD = '>c12I7i7' -- secret, length of the lease, due; then the name of the worker
-- has next, next, made, skipped, missed, has start, start, mode, overlap, count, has until, until,
-- period, place in the spread window, is catching up
local PLAN_STATE = '>Bi7I7I7I7Bi7BBI7Bi7I7I7B'
local PLAN_STATE_BYTES = 69
local SKIP, QUEUE, ALLOW = 0, 1, 2 -- overlap
local DELAY = 1 -- mode
local QUEUE_MAX = 100
local TIME_END = 253402300799999
local SECRET_BYTES = 12
local SENTINEL = string.rep('\255', 65)
local SWEEP_MAX, OUTCOMES_MAX, FOREVER = 100, 5, -1
local AGAIN = -2 -- as the next time: nothing was done, because more must end before
local MOVED = -3 -- likewise: the topic has another number of partitions, which comes as the ring
local SAME = -2 -- as the ring: what an earlier reply has said
local call = redis.call

-- Prints a whole number with all of its digits; tostring() keeps 14. The arguments of call() need
-- no printing: the server does it, with all digits.
local function print_number(number)
    return string.format('%.0f', number)
end

local function read_time() -- rare
    local time = call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The first argument: the time in ms under a virtual clock, with a q before it for a copy; else
-- empty, or 's' in a Cluster; then a slash, and the number of partitions that the caller believes
-- in. 0: it does not matter.
local sender, given, believed = string.match(ARGV[1], '^(%a?)(%d*)/(%d+)$')
local IS_GIVEN = given ~= ''
local time = IS_GIVEN or call('TIME')
local now = IS_GIVEN and tonumber(given) or time[1] * 1000 + math.floor(time[2] / 1000)
local now_text = string.format('%.0f', now)

local PAUSED, LEASE_MS, CRASHES_N, RETENTION_MS, RETENTION_DEAD_MS, DEPTH_N, RESTING, PARTITIONS =
    1, 2, 3, 4, 5, 6, 7, 8
local CLOSED_UNTIL, VERSION, LAYOUT, NEXT, SEQUENCE, CALM = 9, 10, 11, 12, 13, 14
local stored = call('HMGET', CFG, 'paused', 'lease_ms', 'crashes_n', 'retention_ms',
                    'retention_dead_ms', 'depth_n', 'resting', 'partitions', 'closed', 'version',
                    'layout', 'next', 'seq', 'calm')

if stored[LAYOUT] then
    return redis.error_reply('LAYOUT the timers of the topic are in the layout ' .. stored[LAYOUT])
end

local is_known = stored[PAUSED] ~= false

local cfg = {
    paused = stored[PAUSED] == '1',
    lease = tonumber(stored[LEASE_MS] or 30000),
    crashes = tonumber(stored[CRASHES_N] or 5),
    retention = tonumber(stored[RETENTION_MS] or 0),
    retention_dead = tonumber(stored[RETENTION_DEAD_MS] or FOREVER),
    partitions = tonumber(stored[PARTITIONS] or 1), -- 0: sealed, until the number has been changed
    closed = tonumber(stored[CLOSED_UNTIL] or 0), -- of partition 0: the number is being changed
    version = tonumber(stored[VERSION] or 0), -- of the settings
    depth = math.ceil(tonumber(stored[DEPTH_N] or 0) /
                      math.max(tonumber(stored[PARTITIONS] or 1), 1)),
    resting = tonumber(stored[RESTING] or 0), -- plans in `block`
}

if is_known and believed ~= '0' and
    (believed ~= (stored[PARTITIONS] or '1') or
     (stored[CLOSED_UNTIL] and tonumber(stored[CLOSED_UNTIL]) > read_time())) then
    return {now, MOVED, tonumber(stored[PARTITIONS] or 1)}
end

-- Two times that are not after what they are about, so that most calls need not look:
--
--     calm    the first lease, expiry or retention that ends
--     bound   anything after now that a node must wake for, calm included; a ring may be in the past.
--             0: no node was told of it
--
-- No node expects the next time of the partition after `bound`: each reply has it, and an earlier
-- one is announced. When it is past, all nodes ask again, and the script finds out the next one.
-- The nodes of an older version know nothing of these fields; the script sweep looks in any case.
local calm = tonumber(stored[CALM] or 0)
local bound = tonumber(stored[NEXT] or 0)
-- The first time after now of all that this script adds, and of what `calm` is about.
local earliest, soonest = math.huge, math.huge
local has_ready = false -- it has added something that claims can find now
local must_look = false -- it must find out what is next, whatever `bound` says
local is_swept = true

local function is_hash(key) -- rare
    return key == REC or key == TOK or key == ATT or key == HOUR or key == CFG or key == ST
end

local is_looked_through = false

-- Fails if one of the keys is of another type, because another program has written it. Nothing takes
-- back what a script has changed before it fails, so this is called before the first change. What
-- most calls do looks only at the keys that it is about to change, and, if conclude() is going to
-- find out what is next, at those that it reads.
local function look_through() -- rare
    if is_looked_through then return end
    is_looked_through = true
    for i = 1, #KEYS do
        if is_hash(KEYS[i]) then call('HLEN', KEYS[i]) else call('ZCARD', KEYS[i]) end
    end
end

-- Creates every key of a partition that does not exist yet.
local function birth() -- rare
    look_through()
    for i = 1, #KEYS do
        if is_hash(KEYS[i]) then
            call('HSET', KEYS[i], SENTINEL, '')
        else
            call('ZADD', KEYS[i], '+inf', SENTINEL)
        end
    end
    call('HSET', CFG, 'paused', '0', 'seq', '0')
    cfg.partitions = math.max(tonumber(believed), 1)
    if cfg.partitions > 1 then call('HSET', CFG, 'partitions', believed) end
    is_known = true
end

-- How much the numbers of timers that are due in an hour change by this script: of those that are
-- scheduled, ready or leased.
local HOUR_MS = 3600000
local hours = {}

local function count_due(due, change)
    local hour = math.floor(due / HOUR_MS)
    hours[hour] = (hours[hour] or 0) + change
end

-- Returns a new sequence number. Even if it is not used, the script writes.
local sequence = tonumber(stored[SEQUENCE] or 0) -- the last one that was taken before
local sequences = 0 -- that this script has taken

local function take_sequence()
    sequences = sequences + 1
    return sequence + sequences
end

-- Notes that something happens at a time.
local function happens(time)
    if time <= now then
        has_ready = true
    elseif time < earliest then
        earliest = time
    end
end

-- Notes that a lease, an expiry or a retention ends at a time.
local function ends(time)
    if time < soonest then soonest = time end
    happens(time)
end

local function make_prefix(priority, sequence)
    return struct.pack('>BI7', priority, sequence)
end

-- The member of a timer in `block` and in the ends.
local function end_member(prefix, id)
    return '\0' .. string.sub(prefix, 2) .. id
end

local function read_record(bytes)
    local r = {bytes = bytes}
    r.prefix, r.due, r.created, r.expiry, r.expires, r.lease, r.load, r.kind =
        struct.unpack(HEAD, bytes)
    return r
end

local function write_record(id, r)
    look_through()
    local head = struct.pack(HEAD, r.prefix, r.due, r.created, r.expiry, r.expires, r.lease,
                             r.load, r.kind)
    call('HSET', REC, id, head .. string.sub(r.bytes, HEAD_BYTES + 1))
end

local function read_att(id)
    local bytes = call('HGET', ATT, id)
    local a = {state = 0, finished = 0, attempts = 0, crashes = 0, reason = '', outcomes = '',
               result = ''}
    if not bytes then return a end
    local at
    a.state, a.finished, a.attempts, a.crashes, at = struct.unpack(ATT_HEAD, bytes)
    a.reason, a.outcomes, a.result = struct.unpack('>I2c0I2c0I4c0', bytes, at)
    return a
end

local function write_att(id, a)
    look_through()
    call('HSET', ATT, id,
         struct.pack(ATT_HEAD, a.state, a.finished, a.attempts, a.crashes) ..
         struct.pack('>I2c0I2c0I4c0', #a.reason, a.reason, #a.outcomes, a.outcomes, #a.result,
                     a.result))
end

-- Adds an outcome (0: failed, 1: crashed) and drops the oldest of more than OUTCOMES_MAX.
local function note(a, kind, reason)
    local starts, at = {}, 1
    while at <= #a.outcomes do
        starts[#starts + 1] = at
        local _, _, _, after = struct.unpack('>Bi7I2c0', a.outcomes, at)
        at = after
    end
    if #starts >= OUTCOMES_MAX then
        a.outcomes = string.sub(a.outcomes, starts[#starts - OUTCOMES_MAX + 2])
    end
    a.outcomes = a.outcomes .. struct.pack('>Bi7I2c0', kind, now, #reason, reason)
end

local function read_plan(a)
    local p = {rule = string.sub(a.result, PLAN_STATE_BYTES + 1)}
    p.has_next, p.next, p.made, p.skipped, p.missed, p.has_start, p.start, p.mode, p.overlap,
        p.count, p.has_until, p.to, p.period, p.place, p.catching =
        struct.unpack(PLAN_STATE, a.result)
    return p
end

local function write_plan(a, p)
    a.result = struct.pack(PLAN_STATE, p.has_next, p.next, p.made, p.skipped, p.missed,
                           p.has_start, p.start, p.mode, p.overlap, p.count, p.has_until, p.to,
                           p.period, p.place, p.catching) .. p.rule
end

local function rest(count)
    cfg.resting = cfg.resting + count
    call('HINCRBY', CFG, 'resting', count)
end

-- Puts an unfinished plan where it belongs, and stores its state.
local function place_plan(id, r, a, p) -- rare
    write_plan(a, p)
    write_att(id, a)
    if p.has_next == 1 then
        call('ZADD', PLAN, print_number(p.next + p.place), r.prefix .. id)
        happens(p.next + p.place)
        must_look = true
    else
        rest(1)
        call('ZADD', BLOCK, 0, end_member(r.prefix, id))
    end
end

-- Takes an unfinished plan out of its place.
local function displace_plan(id, r) -- rare
    look_through()
    if call('ZREM', PLAN, r.prefix .. id) == 0 and
        call('ZREM', BLOCK, end_member(r.prefix, id)) == 1 then
        rest(-1)
    end
end

-- Puts a timer into `pend`, at the due of its record.
local function pend(id, r)
    call('ZADD', PEND, print_number(r.due), r.prefix .. id)
    count_due(r.due, 1)
    if r.expiry ~= 0 then
        call('ZADD', EXP, print_number(r.expiry), id)
        ends(r.expiry)
    end
    happens(r.due)
end

-- Takes a leased timer, which is due at `due`, out of the leases.
local function end_lease(member, due)
    look_through()
    call('ZREM', LEASE, member)
    call('HDEL', TOK, member)
    count_due(due, -1)
end

-- Takes a timer out of the sorted set that it is in, whatever its state.
local function take_out(id, r, state)
    look_through()
    local member = r.prefix .. id
    if r.kind == A_PLAN and state <= READY then
        displace_plan(id, r)
    elseif state <= READY then
        call('ZREM', PEND, member)
        count_due(r.due, -1)
        if r.expiry ~= 0 then
            call('ZREM', EXP, id)
        end
    elseif state == LEASED then
        end_lease(member, r.due)
    elseif state == BLOCKED then
        call('ZREM', BLOCK, end_member(r.prefix, id))
    else
        call('ZREM', ENDS[state], end_member(r.prefix, id))
    end
end

local function delete(id)
    look_through()
    call('HDEL', REC, id)
    call('HDEL', ATT, id)
end

-- Deletes a timer, whatever its state.
local function drop(id, r, state) -- rare
    take_out(id, r, state)
    delete(id)
end

local function retention_of(state)
    if state == DONE or state == CANCELLED then return cfg.retention end
    return cfg.retention_dead
end

local ended -- of an occurrence; below

-- Ends a timer that is in no sorted set any more. `a` may be nil: nothing to add to `att`.
local function finish(id, prefix, state, reason, a)
    local kept = retention_of(state)
    if kept == 0 then
        delete(id)
    else
        a = a or read_att(id)
        a.state, a.finished, a.reason = state, now, reason
        write_att(id, a)
        call('ZADD', ENDS[state], now_text, end_member(prefix, id))
        if kept ~= FOREVER then ends(now + kept) end
    end
    if string.find(id, '@', 1, true) then ended(id) end
end

local function is_expired(r)
    return r.expiry ~= 0 and r.expiry <= now
end

-- Returns a leased timer, which is in no sorted set any more, to its old place; or ends it, if it
-- has expired. Returns the new state.
local function give_back(id, r, a)
    if is_expired(r) then
        finish(id, r.prefix, EXPIRED, 'expired', a)
        return EXPIRED
    end
    if a then write_att(id, a) end
    pend(id, r)
    return r.due <= now and READY or SCHEDULED
end

-- Gives a timer that is in no sorted set a new due and a new sequence number.
local function move(id, r, due)
    r.prefix = make_prefix(string.byte(r.prefix), take_sequence())
    r.due = due
    write_record(id, r)
    pend(id, r)
end

-- A lease has ended without a word of its worker.
local function lose(member) -- rare
    local id = string.sub(member, 9)
    local r, a = read_record(call('HGET', REC, id)), read_att(id)
    end_lease(member, r.due)
    call('HINCRBY', ST, 'lost', 1)
    a.crashes = a.crashes + 1
    note(a, 1, 'lease lost')
    if a.crashes < cfg.crashes then return give_back(id, r, a) end
    finish(id, r.prefix, DEAD, 'lease lost ' .. print_number(a.crashes) ..
            (a.crashes == 1 and ' time' or ' times'), a)
end

local function expire(id) -- rare
    local r = read_record(call('HGET', REC, id))
    take_out(id, r, SCHEDULED)
    finish(id, r.prefix, EXPIRED, 'expired')
end

-- Returns the ids of the occurrences of a plan that run ('r') or are blocked ('b').
local function occurrences(plan, which)
    local first = which .. plan .. '@'
    local members = call('ZRANGEBYLEX', OCC, '[' .. first, '(' .. first .. ':')
    for i, member in ipairs(members) do
        members[i] = string.sub(member, 2)
    end
    return members
end

local function count_occurrences(plan, which)
    local first = which .. plan .. '@'
    return call('ZLEXCOUNT', OCC, '[' .. first, '(' .. first .. ':')
end

local function nominal_of(id)
    return tonumber(string.sub(id, string.find(id, '@', 1, true) + 1))
end

-- Lets the blocked occurrence with the earliest nominal time run.
local function unblock(plan)
    local first
    for _, id in ipairs(occurrences(plan, 'b')) do
        if not first or nominal_of(id) < nominal_of(first) then first = id end
    end
    local r = read_record(call('HGET', REC, first))
    call('ZREM', BLOCK, end_member(r.prefix, first))
    call('ZREM', OCC, 'b' .. first)
    call('ZADD', OCC, 0, 'r' .. first)
    move(first, r, r.due)
    if is_expired(r) then expire(first) end
end

-- Ends a plan that has no more times, and is in no sorted set any more.
local function end_plan(id, r, a, p)
    p.has_next = 0
    write_plan(a, p)
    finish(id, r.prefix, DONE, '', a)
end

-- Returns the state of an unfinished plan: its record, `att` and PLAN_STATE; or nil.
local function find_plan(id) -- rare
    local bytes = call('HGET', REC, id)
    local r = bytes and read_record(bytes)
    if not r or r.kind ~= A_PLAN then return nil end
    local a = read_att(id)
    if a.state ~= 0 then return nil end
    return r, a, read_plan(a)
end

-- Sets the next time of a plan of mode delay, which is in no sorted set, to now and its period; or
-- ends the plan.
local function go_on(id, r, a, p)
    local next = now + p.period
    local is_used = p.count > 0 and p.made + p.skipped + p.missed >= p.count
    if is_used or (p.has_until == 1 and next > p.to) or next > TIME_END then
        return end_plan(id, r, a, p)
    end
    p.has_next, p.next = 1, next
    place_plan(id, r, a, p)
end

-- An occurrence has ended: the next one in the queue runs, or a plan of mode delay goes on.
function ended(id) -- rare
    local plan = string.sub(id, 1, string.find(id, '@', 1, true) - 1)
    call('ZREM', OCC, 'r' .. id, 'b' .. id)
    local runs, blocked = count_occurrences(plan, 'r'), count_occurrences(plan, 'b')
    if runs > 0 then return end
    if blocked > 0 then return unblock(plan) end
    local r, a, p = find_plan(plan)
    if not r or p.has_next == 1 then return end
    displace_plan(plan, r)
    go_on(plan, r, a, p)
end

-- Ends leases that are over. Returns their number.
local function lose_leases() -- rare
    local lost = call('ZRANGEBYSCORE', LEASE, '-inf', now_text, 'LIMIT', 0, SWEEP_MAX)
    for _, member in ipairs(lost) do
        lose(member)
    end
    return #lost
end

-- Ends timers that have expired. Returns their number.
local function expire_timers(limit) -- rare
    local expired = call('ZRANGEBYSCORE', EXP, '-inf', now_text, 'LIMIT', 0, limit)
    for _, id in ipairs(expired) do
        expire(id)
    end
    return #expired
end

-- Deletes ended timers whose retention is over. Returns their number.
local function forget(state, limit) -- rare
    local members = call('ZRANGEBYSCORE', ENDS[state], '-inf',
                         print_number(now - retention_of(state)), 'LIMIT', 0, limit)
    for _, member in ipairs(members) do
        delete(string.sub(member, 9))
        call('ZREM', ENDS[state], member)
    end
    return #members
end

-- Ends what is past, at most SWEEP_MAX rows, and finds out how long nothing more is.
local function sweep() -- rare
    local function head_of(key)
        return tonumber(call('ZRANGE', key, '0', '0', 'WITHSCORES')[2] or math.huge)
    end
    local left = SWEEP_MAX
    if head_of(LEASE) <= now then left = left - lose_leases() end
    if head_of(EXP) <= now then left = left - expire_timers(left) end
    for state = DONE, SKIPPED do
        local kept = retention_of(state)
        if kept ~= FOREVER and head_of(ENDS[state]) <= now - kept then
            left = left - forget(state, left)
        end
    end
    is_swept = left > 0
    if not is_swept then return end
    calm = math.min(head_of(LEASE), head_of(EXP))
    for state = DONE, SKIPPED do
        local kept = retention_of(state)
        if kept ~= FOREVER then calm = math.min(calm, head_of(ENDS[state]) + kept) end
    end
    if calm ~= tonumber(stored[CALM]) then call('HSET', CFG, 'calm', print_number(calm)) end
end

-- Finds a timer by its id, and ends it or deletes it if its time is over. Returns its record, its
-- state and the score of its member; or nil.
local function look(id)
    local bytes = call('HGET', REC, id)
    if not bytes or id == SENTINEL then return nil end
    local r = read_record(bytes)
    local member = r.prefix .. id
    if r.kind == A_PLAN and find_plan(id) then
        return r, SCHEDULED, tonumber(call('ZSCORE', PLAN, member) or 0)
    end
    local score = call('ZSCORE', PEND, member)
    if score then
        if not is_expired(r) then
            return r, tonumber(score) <= now and READY or SCHEDULED, tonumber(score)
        end
        expire(id)
        return look(id)
    end
    score = call('ZSCORE', LEASE, member)
    if score then
        if tonumber(score) > now then return r, LEASED, tonumber(score) end
        lose(member)
        return look(id)
    end
    local a = read_att(id)
    if a.state == 0 then return r, BLOCKED, 0 end
    local kept = retention_of(a.state)
    if kept ~= FOREVER and a.finished + kept <= now then
        drop(id, r, a.state)
        return nil
    end
    return r, a.state, a.finished
end

-- Finds the live lease of a token. Returns its record or nil, and what `tok` has of it.
local function lease_of(prefix, id, secret)
    local member = prefix .. id
    local entry = call('HGET', TOK, member)
    if not entry or string.sub(entry, 1, SECRET_BYTES) ~= secret then return nil end
    local score = tonumber(call('ZSCORE', LEASE, member))
    if not score or score <= now then return nil end
    return member, entry
end

-- The conflict policies of SCHEDULE, and the letters that say what its time means: see schedule.lua.
local KEEP, REJECT, EARLIEST, LATEST = 1, 2, 3, 4
local LETTER_A, LETTER_I = 97, 105

local function due_of(how, ms)
    local when = string.byte(how)
    if when == LETTER_A then return ms end
    return when == LETTER_I and now + ms or now
end

-- Returns the due of an old timer, or the next time of an old plan; nil if it has none.
local function old_due(id, old, state)
    if state > LEASED then return nil end
    if old.kind ~= A_PLAN then return old.due end
    local p = read_plan(read_att(id))
    return p.has_next == 1 and p.next or nil
end

-- Returns whether the policy keeps the old timer.
local function old_stays(policy, id, old, state, due)
    if policy == KEEP or policy == REJECT then return true end
    if policy ~= EARLIEST and policy ~= LATEST then return false end
    local its_due = old_due(id, old, state)
    if not its_due then return false end
    if policy == EARLIEST then return its_due <= due end
    return its_due >= due
end

-- Returns the result of SCHEDULE if its policy keeps the old timer, else nil.
local function stay(id, old, state, how, due)
    local policy = tonumber(string.sub(how, 2, 2))
    if not old_stays(policy, id, old, state, due) then return nil end
    take_sequence() -- WAIT proves only what this connection has written
    return policy == REJECT and 'taken' or 'kept'
end

if is_known and calm <= now then sweep() end

-- Returns the fields of `cfg` that all partitions have alike, as names and values.
local function settings()
    local own = {seq = true, wake = true, next = true, calm = true, resting = true,
                 version = true, partitions = true, closed = true, [SENTINEL] = true}
    local all, fields = call('HGETALL', CFG), {}
    for i = 1, #all, 2 do
        if not own[all[i]] then
            fields[#fields + 1] = all[i]
            fields[#fields + 1] = all[i + 1]
        end
    end
    return fields
end

-- Lets all nodes look again at once: a retention may have become shorter.
local function look_again() -- rare
    call('HSET', CFG, 'next', '0', 'calm', '0')
    is_swept = false
    must_look = true
    has_ready = true
end

-- Ends a script: `results` has its results from the fourth on. Writes what the script has counted,
-- and sees to it that nodes wake for what it has added. Under a virtual clock there are none that
-- sleep. A copy has a time of its own: the next script of a node looks again, and tells the others.
-- One function, because each that a call creates takes its time.
local function conclude(results)
    local next, ring, is_copy = math.min(bound, earliest), SAME, sender == 'q'
    if sequences > 0 then call('HINCRBY', CFG, 'seq', sequences) end
    for hour, change in pairs(hours) do
        if change ~= 0 and call('HINCRBY', HOUR, hour, change) == 0 then
            call('HDEL', HOUR, hour)
        end
    end
    if not is_known then
        next, ring = FOREVER, FOREVER
    elseif not is_swept and (bound <= now or must_look or is_copy) then
        next = now
    elseif bound <= now or must_look or is_copy then
        local due = call('ZRANGEBYSCORE', PEND, '(' .. string.format('%.0f', now), '(+inf',
                         'WITHSCORES', 'LIMIT', '0', '1')[2]
        ring = tonumber(call('ZRANGE', PLAN, '0', '0', 'WITHSCORES')[2] or math.huge)
        next = math.min(ring, tonumber(due or math.huge), calm, soonest)
    end
    if is_known and is_copy then
        call('HSET', CFG, 'next', '0', 'calm', '0')
    elseif is_known then
        local is_new = is_swept and next ~= bound
        if is_new then call('HSET', CFG, 'next', string.format('%.0f', next)) end
        if soonest < calm then call('HSET', CFG, 'calm', string.format('%.0f', soonest)) end
        local is_earlier = bound == 0 or (bound > now and next < bound)
        if (has_ready or (is_earlier and next ~= math.huge)) and not IS_GIVEN then
            call(sender == 's' and 'SPUBLISH' or 'PUBLISH', string.sub(CFG, 1, -4) .. 'wake',
                 string.format('%.0f', has_ready and now or next))
        end
    end
    results[1] = now
    results[2] = next == math.huge and FOREVER or next
    results[3] = ring == math.huge and FOREVER or ring
    return results
end

-- The same, of results from the first on.
local function reply(results)
    for i = #results, 1, -1 do
        results[i + 3] = results[i]
    end
    return conclude(results)
end

-- Ends a script that has done nothing: its call is to be repeated.
local function again() -- rare
    conclude({})
    return {now, AGAIN, -1}
end
