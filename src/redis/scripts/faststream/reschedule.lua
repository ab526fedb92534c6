-- RESCHEDULE. Items of three: id, when (i: in, a: at), ms. Each result is 1, or 0 if there is no
-- such timer.

local ARGS = 3

local function reschedule(id, when, ms)
    if not score_of(id) or call('HEXISTS', PAYLOADS, id) == 0 then return 0 end
    call('ZADD', TIMELINE, print_score(when == 'i' and now + ms or ms), id)
    return 1
end

local results = {}
for at = 3, #ARGV, ARGS do
    results[#results + 1] = reschedule(ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]))
end
return reply(results)
