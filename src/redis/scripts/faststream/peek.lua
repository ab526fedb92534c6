-- What moving a timer to the dead ones must know. Items of one: the secret of a token. Each result
-- is {id, envelope}, or false for a token that is not of a live lease.

local results = {}
for at = 3, #ARGV do
    local lease, envelope = find_lease(ARGV[at])
    results[#results + 1] = lease and {lease.id, envelope} or false
end
return reply(results)
