-- PURGE. Arguments: state (-1: all terminal ones), the latest time at which those to purge came
-- into the state (empty: now), the most to purge. The result is their number and that time.

local function purge_end(state, until_text, limit)
    local members = call('ZRANGEBYSCORE', ENDS[state], '-inf', until_text, 'LIMIT', 0, limit)
    for _, member in ipairs(members) do
        delete(string.sub(member, 9))
        call('ZREM', ENDS[state], member)
    end
    return #members
end

local function purge_pend(from, to, limit)
    local members = call('ZRANGEBYSCORE', PEND, from, to, 'LIMIT', 0, limit)
    for _, member in ipairs(members) do
        local id = string.sub(member, 9)
        local r = read_record(call('HGET', REC, id))
        take_out(id, r, READY)
        delete(id)
        if string.find(id, '@', 1, true) then ended(id) end
    end
    return #members
end

-- Purges plans, and leaves their occurrences.
local function purge_plans(limit)
    local members = call('ZRANGEBYSCORE', PLAN, '-inf', '(+inf', 'LIMIT', 0, limit)
    for _, member in ipairs(cfg.resting > 0 and call('ZRANGEBYSCORE', BLOCK, 0, 0) or {}) do
        members[#members + 1] = member
    end
    local count = 0
    for _, member in ipairs(members) do
        local id = string.sub(member, 9)
        local r = count < limit and find_plan(id)
        if r then
            displace_plan(id, r)
            delete(id)
            count = count + 1
        end
    end
    return count
end

local function purge_ends(until_text, limit)
    local count = 0
    for state = DONE, SKIPPED do
        count = count + purge_end(state, until_text, limit - count)
    end
    return count
end

if not is_known then return reply({0, now}) end
if not is_swept then return again() end
local state, limit = tonumber(ARGV[2]), tonumber(ARGV[4])
local until_text = ARGV[3] == '' and now_text or ARGV[3]
local count
if state == -1 then
    count = purge_ends(until_text, limit)
elseif state == READY then
    count = purge_pend('-inf', until_text, limit)
elseif state == SCHEDULED then
    count = purge_pend('(' .. until_text, '(+inf', limit)
    count = count + purge_plans(limit - count)
else
    count = purge_end(state, until_text, limit)
end
return reply({count, tonumber(until_text)})
