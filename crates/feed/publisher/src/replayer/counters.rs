//! What a replayer counts.

use pares_roles::counters;

counters! {
    Messages "messages" "Messages read from the publisher's log."
    Resent "resent" "Requests answered with a packet."
    Malformed "malformed" "Datagrams that are not requests."
    Strange "strange" "Requests for a session that is no longer stored."
    NotThere "not_there" "Requests for messages that were not sent."
    TooMany "too_many" "Requests not answered, because too many arrived."
    Unreadable "unreadable" "Requests not answered, because the messages could not be read."
    Clients "clients" "Connections open."
    TurnedAway "turned_away" "Connections closed at once, because there were too many."
    FailedHandshakes "failed_handshakes" "Connections that ended during the TLS handshake."
    Ended "ended" "Connections that ended before the client had everything or left."
    Snapshots "snapshots" "Snapshots made."
    UnreadableLogs "unreadable_logs" "1 while the publisher's log cannot be read, or is missing although the publisher runs."
    LogAnew "log_anew" "Times the publisher's log was found replaced."
}
