-- ACK. Items of four: prefix, id and secret of a token, result. Each result is 1, or 0 for a token
-- that is not of a live lease.

local ARGS = 4

local function ack(at)
    local prefix, id = ARGV[at], ARGV[at + 1]
    local member, entry = lease_of(prefix, id, ARGV[at + 2])
    if not member then return 0 end
    local _, _, due = struct.unpack(TOK_HEAD, entry)
    end_lease(member, due)
    local a
    if cfg.retention ~= 0 then
        a = read_att(id)
        a.result = ARGV[at + 3]
    end
    finish(id, prefix, DONE, '', a)
    return 1
end

local results, count = {}, 0
for at = 2, #ARGV, ARGS do
    local acked = ack(at)
    count = count + acked
    results[#results + 1] = acked
end
if count > 0 then call('HINCRBY', ST, 'completed', count) end
return reply(results)
