-- Adds a timer that is dead from the beginning, in place of one with its id: of FAIL in a topic
-- whose layout has no dead timers. Items of four: id, bytes of payload and headers, body, reason.
-- Each result is 'new'.

local ARGS = 4

local function bury(at)
    local id = ARGV[at]
    local old, state = look(id)
    if old then drop(id, old, state) end
    local r = {prefix = make_prefix(128, take_sequence()), due = now, created = now, expires = 0,
               expiry = 0, lease = 0, load = tonumber(ARGV[at + 1]), kind = TIMER}
    r.bytes = string.rep('\0', HEAD_BYTES) .. ARGV[at + 2]
    write_record(id, r)
    finish(id, r.prefix, DEAD, ARGV[at + 3])
    return 'new'
end

if not is_known then birth() end
local results = {}
for at = 2, #ARGV, ARGS do
    results[#results + 1] = bury(at)
end
return reply(results)
