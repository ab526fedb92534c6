-- PURGE. Arguments: state (-1: all terminal ones), the latest time at which those to purge came
-- into the state (empty: now), the most to purge. The result is their number and that time.

local function purge_end(state, until_text, limit)
    local members = call('ZRANGEBYSCORE', ENDS[state], '-inf', until_text, 'LIMIT', 0, limit)
    for _, member in ipairs(members) do
        call('ZREM', ENDS[state], member)
        delete(string.sub(member, 9))
    end
    return #members
end

local function purge_pend(from, to, limit)
    local members = call('ZRANGEBYSCORE', PEND, from, to, 'LIMIT', 0, limit)
    for _, member in ipairs(members) do
        local id = string.sub(member, 9)
        call('ZREM', PEND, member)
        call('ZREM', EXP, id)
        delete(id)
    end
    return #members
end

local function purge_ends(until_text, limit)
    local count = 0
    for state = DONE, SKIPPED do
        count = count + purge_end(state, until_text, limit - count)
    end
    return count
end

if not cfg.known then return reply({0, now}) end
while not is_swept do
    is_swept = sweep()
end
local state, limit = tonumber(ARGV[2]), tonumber(ARGV[4])
local until_text = ARGV[3] == '' and now_text or ARGV[3]
local count
if state == -1 then
    count = purge_ends(until_text, limit)
elseif state == READY then
    count = purge_pend('-inf', until_text, limit)
elseif state == SCHEDULED then
    count = purge_pend('(' .. until_text, '(+inf', limit)
else
    count = purge_end(state, until_text, limit)
end
return reply({count, tonumber(until_text)})
