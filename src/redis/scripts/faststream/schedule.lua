-- SCHEDULE. Items of five: id, conflict policy, when (n: now, i: in, a: at), ms, envelope. Each
-- result is 'new', 'kept' or 'taken'.

local ARGS = 5
local REPLACE, REJECT = 0, 2

local function due_of(when, ms)
    if when == 'n' then return now end
    return when == 'i' and now + ms or ms
end

local function schedule(at)
    local id, policy = ARGV[at], tonumber(ARGV[at + 1])
    local due = due_of(ARGV[at + 2], tonumber(ARGV[at + 3]))
    local old = policy ~= REPLACE and score_of(id) and call('HGET', PAYLOADS, id)
    if old then
        call('HSET', PAYLOADS, id, old) -- WAIT proves only what this connection has written
        return policy == REJECT and 'taken' or 'kept'
    end
    call('ZADD', TIMELINE, print_score(due), id)
    call('HSET', PAYLOADS, id, ARGV[at + 4])
    return 'new'
end

local results = {}
for at = 3, #ARGV, ARGS do
    results[#results + 1] = schedule(at)
end
return reply(results)
