-- RELEASE and FAIL. Items of three: the secret of a token, delay in ms (empty: the lease runs out),
-- the statistic to count in. Each result is when the timer is due again, or false for a token that
-- is not of a live lease.

local ARGS = 3

local function release(secret, delay, statistic)
    local lease = find_lease(secret)
    if not lease then return false end
    local due = delay and now + delay or lease.stop
    if delay then call('ZADD', TIMELINE, print_score(due), lease.id) end
    drop(secret)
    call('HINCRBY', STATE, statistic, 1)
    return due
end

local results = {}
for at = 3, #ARGV, ARGS do
    results[#results + 1] = release(ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2])
end
return reply(results)
