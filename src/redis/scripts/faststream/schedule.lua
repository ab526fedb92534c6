-- SCHEDULE. Items of five: id, conflict policy, when (n: now, i: in, a: at), ms, envelope. Each
-- result is 'new', 'kept' or 'taken'.

local ARGS = 5

local function due_of(when, ms)
    if when == 'n' then return now end
    return when == 'i' and now + ms or ms
end

local function schedule(at)
    local id, policy = ARGV[at], tonumber(ARGV[at + 1])
    local due = due_of(ARGV[at + 2], tonumber(ARGV[at + 3]))
    local stays = stay(id, policy)
    if stays then return stays end
    call('ZADD', TIMELINE, print_score(due), id)
    call('HSET', PAYLOADS, id, ARGV[at + 4])
    return 'new'
end

local results = {}
for at = 3, #ARGV, ARGS do
    results[#results + 1] = schedule(at)
end
return reply(results)
