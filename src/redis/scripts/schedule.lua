-- SCHEDULE. Items of eleven: id, conflict policy, priority, when (n: now, i: in, a: at), ms, lease,
-- expires, bytes of payload and headers, body, state and rule of a plan (empty: not a plan), when
-- the plan was created: its times are computed from that, so it must be the time from which the
-- caller has computed the first one. Each result is 'new', 'kept', 'taken' or 'full'.

local ARGS = 11
local KEEP, REJECT, EARLIEST, LATEST = 1, 2, 3, 4

local function due_of(when, ms)
    if when == 'n' then return now end
    return when == 'i' and now + ms or ms
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

local function schedule(at)
    local id, policy = ARGV[at], tonumber(ARGV[at + 1])
    local due = due_of(ARGV[at + 3], tonumber(ARGV[at + 4]))
    local expires = tonumber(ARGV[at + 6])
    local old, state = look(id)
    if old and old_stays(policy, id, old, state, due) then
        take_sequence() -- WAIT proves only what this connection has written
        return policy == REJECT and 'taken' or 'kept'
    end
    local is_plan = ARGV[at + 9] ~= ''
    local replaces = old and state < DONE and old.kind ~= A_PLAN
    if not is_plan and not replaces and is_full() then return 'full' end
    if old then drop(id, old, state) end
    local r = {prefix = make_prefix(tonumber(ARGV[at + 2]), take_sequence()), due = due,
               created = is_plan and tonumber(ARGV[at + 10]) or now, expires = expires, expiry = expires > 0 and due + expires or 0,
               lease = tonumber(ARGV[at + 5]), load = tonumber(ARGV[at + 7]),
               kind = is_plan and A_PLAN or TIMER}
    r.bytes = string.rep('\0', HEAD_BYTES) .. ARGV[at + 8]
    store(id, r, ARGV[at + 9])
    return 'new'
end

if cfg.depth > 0 and not is_swept then return again() end -- it counts no timer that has expired
if not cfg.known then birth() end
local results = {}
for at = 2, #ARGV, ARGS do
    results[#results + 1] = schedule(at)
end
return reply(results)
