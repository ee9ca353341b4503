//! A gateway's rules: number, admit, answer.
