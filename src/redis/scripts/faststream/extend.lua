-- EXTEND. Items of two: the secret of a token, length from now (0: that of the claim). Each result
-- is the length, or false for a token that is not of a live lease.

local ARGS = 2

local function extend(secret, length)
    local lease = find_lease(secret)
    if not lease then return false end
    if length == 0 then length = lease.length end
    lease.stop = now + length
    call('ZADD', TIMELINE, print_score(lease.stop), lease.id)
    write_lease(secret, lease)
    return length
end

local results = {}
for at = 3, #ARGV, ARGS do
    results[#results + 1] = extend(ARGV[at], tonumber(ARGV[at + 1]))
end
return reply(results)
