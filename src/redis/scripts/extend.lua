-- EXTEND. Items of four: prefix, id and secret of a token, length in ms (0: that of the claim).
-- Each result is the length, or false for a token that is not of a live lease.

local ARGS = 4

local function extend(at)
    local member, entry = lease_of(ARGV[at], ARGV[at + 1], ARGV[at + 2])
    if not member then return false end
    local length = tonumber(ARGV[at + 3])
    if length == 0 then
        local _, claimed = struct.unpack(TOK_HEAD, entry)
        length = claimed
    end
    look_through()
    call('ZADD', LEASE, print_number(now + length), member)
    ends(now + length)
    return length
end

local results = {}
for at = 2, #ARGV, ARGS do
    results[#results + 1] = extend(at)
end
return reply(results)
