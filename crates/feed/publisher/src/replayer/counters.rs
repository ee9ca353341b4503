//! What a replayer counts.

use pares_roles::counters;

counters! {
    Messages "messages" "Messages read from the publisher's log."
    Resent "resent" "Requests answered with a packet."
    Malformed "malformed" "Datagrams that are no requests."
    Strange "strange" "Requests for a session that is not kept."
    NotThere "not_there" "Requests for messages that were not sent."
    TooMany "too_many" "Requests not answered, since too many came."
    Unreadable "unreadable" "Requests not answered, since the messages could not be read."
    Clients "clients" "Connections open."
    TurnedAway "turned_away" "Connections closed at once, since there were too many."
    FailedHandshakes "failed_handshakes" "Connections that ended before their TLS handshake was over."
    Ended "ended" "Connections that ended for another reason than that the client had all, or left."
    Snapshots "snapshots" "Snapshots made."
    UnreadableLogs "unreadable_logs" "1 while the publisher's log cannot be read, or is not there though the publisher runs."
    LogAnew "log_anew" "Times another log was found in the place of the publisher's."
}
