//! The types that Casebook sends and stores.
//!
//! An [`Alert`] opens an investigation. The Hub appends [`Event`]s to its log and creates [`Task`]s, each with the
//! [`View`] that its role may have. The Director plans a [`Question`]. Experts answer with [`FindingDraft`]s that cite
//! recorded [`ToolCall`]s, and code checks each citation ([`checked`]). The Critic proposes a [`ReviewDraft`] that
//! scores every finding, and then a [`TimelineDraft`] of the credible ones. The Director decides whether to stay in
//! the phase or advance, and finally proposes a [`Conclusion`]. Every proposal passes rules before it becomes state
//! ([`ruling`]), and the result is a [`Report`].
//!
//! Agents share information through three channels only: the Director's Journal ([`journal`]), the Critic's Review
//! ([`review`]) and the Critic's Timeline ([`timeline`]).

pub mod act;
pub mod alert;
pub mod budget;
pub mod checked;
pub mod closed;
pub mod coverage;
pub mod event;
pub mod finding;
pub mod hash;
pub mod ids;
pub mod join;
pub mod journal;
pub mod key;
pub mod lead;
pub mod model;
pub mod notice;
pub mod proof;
pub mod report;
pub mod review;
pub mod rubric;
pub mod ruling;
pub mod subject;
pub mod task;
pub mod time;
pub mod timeline;
pub mod tool;
pub mod view;

pub use act::{AccountedAct, Accounting, Act, ActKind, ActPart, Acts, Claim, MAX_ACTS};
pub use alert::{Alert, AlertError, MAX_ALERT_BYTES, Severity, one_line, one_sentence};
pub use budget::{Budget, Headroom, Usage};
pub use checked::{Checked, CitationCheck, RecordRef};
pub use coverage::{HostCoverage, KindCoverage, SourceCoverage};
pub use event::{ChainError, Event, Recorded};
pub use finding::{Bearing, Citation, Entity, EntityKind, Finding, FindingDraft, FindingKind, Locator, Weight};
pub use ids::{
    AGAIN, AlertId, ArtifactId, CallId, DOMAINS, Domain, FindingId, InvalidId, InvestigationId, LeadId, ModelCallId,
    TaskId,
};
pub use join::{Join, Joined};
pub use journal::{EntryDraft, EntryKind, JournalEntry, Priority};
pub use lead::{Fate, Lead, LeadDraft, LeadState, MAX_LEADS};
pub use model::{KeptRequest, ModelCall, Purpose, Tokens};
pub use notice::{DeadLetter, OutcomeNotice, Step, StepNotice};
pub use proof::{FileHash, Files, Head, MAX_FILES, MAX_NOTES, Proof, RecordHash, Snapshot, SourceNote};
pub use report::Report;
pub use review::{Judgement, KEPT, Review, ReviewDraft, Reviewed};
pub use rubric::{Coherence, Credibility, Score};
pub use ruling::{Guard, Rule, Ruling, Verdict};
pub use task::{
    ANALYST, Allowance, Answer, Conclusion, Decision, Member, MemberState, Move, Outcome, Phase, Plan, Player,
    Question, Role, SourceInfo, Task, TaskKind,
};
pub use time::{EventTime, Precision, TimeBasis, Timestamp, apart, between};
pub use timeline::{EventDraft, Gap, GapKind, Timeline, TimelineDraft, TimelineEvent};
pub use tool::{CallStatus, ToolCall, ToolSpec, Toolset, offered_name, server_of, source_name};
pub use view::{CheckedFinding, DirectorView, DomainToolset, ExpertView, ReviewView, TimelineView, View};
