//! What is asked about people.

use pares_wice::kinds;

use crate::command::UserName;
use crate::people::row::{PasswordString, PersonRight, SessionDigest};

/// A request about a person. It has no place in a log, and no number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersonAsked {
    /// There is a new person. Refused if the name is taken.
    Add {
        /// Who.
        name: UserName,
        /// The string of argon2id that the password fits.
        password: PasswordString,
        /// What the person may do.
        rights: Vec<PersonRight>,
        /// Whether an account of this name may be there already: it is this person's then. Never so for who signs up alone.
        takes_account: bool,
    },
    /// A person is about to try to sign in: the try is counted, and the reply is the person. Refused before the wait is over.
    Try {
        /// As whom.
        name: UserName,
    },
    /// The password fits, and the code too if there is one: a session begins, and no try counts any more.
    SignIn {
        /// Who.
        name: UserName,
        /// What the password fitted. Refused if it is another by now.
        password: PasswordString,
        /// The 30 seconds of the code, where there is one. Refused if one of these, or of later ones, was used.
        step: Option<u64>,
        /// The session.
        session: SessionDigest,
    },
    /// The session ends.
    SignOut {
        /// Which.
        session: SessionDigest,
    },
    /// The session was used.
    Seen {
        /// Which.
        session: SessionDigest,
    },
    /// The secret of a second factor, not confirmed yet, for one whose password fitted: no try counts any more. Refused while there is a confirmed one.
    SetCode {
        /// Whose.
        name: UserName,
        /// 20 bytes.
        secret: Vec<u8>,
    },
    /// Its owner has shown a code of it: from now on one is asked for. All other sessions end.
    ConfirmCode {
        /// Whose.
        name: UserName,
        /// Which secret it was. Refused if it is another by now.
        secret: Vec<u8>,
        /// The 30 seconds of the code.
        step: u64,
        /// The session that continues.
        session: SessionDigest,
    },
    /// There is no second factor any more. No try counts any more.
    DropCode {
        /// Whose.
        name: UserName,
        /// The 30 seconds of the code, where it is confirmed. Refused if one of these, or of later ones, was used.
        step: Option<u64>,
    },
    /// A person may do this and no more.
    SetRights {
        /// Who.
        name: UserName,
        /// What.
        rights: Vec<PersonRight>,
    },
    /// The same by a supervisor: refused if that is none when it is executed. It is held until this commits, so of two who take the right from each other one keeps it, at whatever sites.
    SetRightsOf {
        /// The supervisor.
        by: UserName,
        /// Who.
        name: UserName,
        /// What.
        rights: Vec<PersonRight>,
    },
    /// Another password, by its owner, whose second factor stays. All other sessions end, and no try counts any more.
    ChangePassword {
        /// Whose.
        name: UserName,
        /// What the password before fitted. Refused if it is another by now.
        before: PasswordString,
        /// The string of argon2id that the password fits.
        password: PasswordString,
        /// The session that continues.
        session: SessionDigest,
    },
    /// All sessions end.
    SignOutAll {
        /// Whose.
        name: UserName,
    },
    /// Another password. There is no second factor any more, and all sessions end: for who has lost them.
    SetPassword {
        /// Whose.
        name: UserName,
        /// The string of argon2id that the password fits.
        password: PasswordString,
    },
}

kinds!(PersonAsked, "request about a person" {
    1 => Add { name, password, rights, takes_account },
    2 => Try { name },
    3 => SignIn { name, password, step, session },
    4 => SignOut { session },
    5 => Seen { session },
    6 => SetCode { name, secret },
    7 => ConfirmCode { name, secret, step, session },
    8 => DropCode { name, step },
    9 => SetRights { name, rights },
    10 => SetPassword { name, password },
    11 => SetRightsOf { by, name, rights },
    12 => ChangePassword { name, before, password, session },
    13 => SignOutAll { name },
});
