//! The models of a models file over HTTP. [`codec`] has the formats of the providers, [`send`] makes one attempt with
//! limits, [`retry`] repeats it, and [`circuit`](crate::model::circuit) leaves a provider alone that fails.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use casebook_protocol::one_line;
use secrecy::SecretString;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::Instrument;

use crate::model::circuit::{Admission, Change, Circuit};
use crate::model::client::codec::{Codec, Decoded};
use crate::model::config::{Config, Profile};
use crate::model::retry::{self, Failed, Pace};
use crate::model::secret::{self, NoKey};
use crate::model::{Answered, Ask, AskError, Fault, Model, tokens as estimate};
use casebook_protocol::Tokens;
use casebook_runtime::model_span;
use casebook_runtime::telemetry::{self, meter};

mod codec;
mod send;
#[cfg(test)]
mod tests;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    NoKey(#[from] NoKey),
    #[error("the HTTP client cannot start: {0}")]
    Http(String),
}

struct Wired {
    profile: Profile,
    /// One for all models at the same address.
    circuit: Arc<Mutex<Circuit>>,
    key: Option<SecretString>,
    permits: Semaphore,
}

impl Wired {
    /// Waits until the provider may be asked.
    async fn admitted(&self, deadline: Instant) -> Result<(), Failed> {
        loop {
            let now = Instant::now();
            // The lock is not held over the wait.
            let admission = self.circuit().admit(now, self.profile.timeout, deadline.duration_since(now));
            match admission {
                Admission::Go => return Ok(()),
                Admission::Wait(wait) => tokio::time::sleep(wait).await,
                Admission::Refuse(why) => return Err(Failed::final_(Fault::Unavailable, why)),
            }
        }
    }

    /// Takes the end of an attempt into account. A request that is refused by itself shows that the provider answers.
    fn ended(&self, begun: Instant, failed: Option<&Failed>) {
        let now = Instant::now();
        let change = match failed.filter(|failed| failed.general) {
            Some(failed) => self.circuit().failed(begun, now, failed),
            None => self.circuit().answered(now),
        };
        let (model, provider) = (self.profile.name.as_str(), self.profile.provider.name());
        match change {
            Some(Change::Opened { failures, last }) => {
                let last = secret::redact(&last, self.key.as_ref());
                tracing::warn!(
                    model,
                    provider,
                    failures,
                    last,
                    "a model provider fails; it is asked again after pauses"
                );
            }
            Some(Change::Closed { failures, lasted }) => {
                let seconds = lasted.as_secs();
                tracing::warn!(model, provider, failures, seconds, "a model provider answers again");
            }
            None => {}
        }
    }

    fn circuit(&self) -> MutexGuard<'_, Circuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct Client {
    models: BTreeMap<String, Arc<Wired>>,
    http: reqwest::Client,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("models", &self.models.keys()).finish_non_exhaustive()
    }
}

impl Client {
    pub fn open(config: &Config) -> Result<Self, OpenError> {
        Self::with(config, |name| std::env::var(name).ok(), Pace::default())
    }

    fn with(config: &Config, env: impl Fn(&str) -> Option<String>, pace: Pace) -> Result<Self, OpenError> {
        casebook_runtime::tls::install();
        let mut circuits: BTreeMap<(&str, &str), Arc<Mutex<Circuit>>> = BTreeMap::new();
        let models = config.models().map(|profile| {
            let key = secret::key(profile, &env)?;
            let permits = Semaphore::new(usize::try_from(profile.concurrency).unwrap_or(1));
            let circuit = circuits.entry((profile.provider.name(), &profile.base_url));
            let circuit = Arc::clone(circuit.or_insert_with(|| Arc::new(Mutex::new(Circuit::new(pace)))));
            Ok((profile.name.clone(), Arc::new(Wired { profile: profile.clone(), circuit, key, permits })))
        });
        let models = models.collect::<Result<_, NoKey>>()?;
        let http = send::http().map_err(|error| OpenError::Http(one_line(&error.to_string(), 200)))?;
        Ok(Self { models, http })
    }

    async fn answer(&self, wired: &Wired, ask: &Ask, time: Duration, made: &AtomicU32) -> Result<Answered, Failed> {
        let deadline = Instant::now().checked_add(time).unwrap_or_else(far);
        let profile = &wired.profile;
        let codec = Codec::of(profile.provider);
        let draft = codec.encode(profile, ask);
        let pace = wired.circuit().pace();
        let attempt = || async {
            let permit = wired.permits.acquire().await;
            wired.admitted(deadline).await?;
            made.fetch_add(1, Ordering::Relaxed);
            let begun = Instant::now();
            let json = send::once(&self.http, wired.key.as_ref(), profile, &draft).await;
            drop(permit);
            let decoded = json.and_then(|json| codec.decode(profile, &json));
            wired.ended(begun, decoded.as_ref().err());
            decoded
        };
        let Decoded { version, reply, tokens } = retry::attempts(pace, deadline, attempt).await?;
        let counted = counted(tokens, draft.body.len(), reply.bytes());
        let (estimated, tokens) = (counted != tokens, counted);
        let cost_micros = profile.price.map_or(0, |price| price.cost(&tokens));
        Ok(Answered { reply, version, tokens, estimated, cost_micros, attempts: made.load(Ordering::Relaxed) })
    }
}

/// What a call used. A count that the provider does not report is estimated from the bytes of request and reply, so that
/// budgets hold.
fn counted(reported: Tokens, request: usize, reply: usize) -> Tokens {
    let or = |count: u64, bytes: usize| if count == 0 { estimate(bytes) } else { count };
    Tokens { input: or(reported.input, request), output: or(reported.output, reply), ..reported }
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(365 * 24 * 3600)
}

#[async_trait]
impl Model for Client {
    async fn ask(&self, ask: &Ask, time: Duration) -> Result<Answered, AskError> {
        let Some(wired) = self.models.get(&ask.model) else {
            let message = format!("expected a model of the models file, got {:?}", one_line(&ask.model, 64));
            return Err(AskError { fault: Fault::Rejected, message, attempts: 0 });
        };
        let (vendor, name) = (wired.profile.provider.vendor(), wired.profile.provider_model.as_str());
        let span = model_span!(ask, vendor, name);
        let begun = Instant::now();
        let made = AtomicU32::new(0);
        let result = async {
            match tokio::time::timeout(time, self.answer(wired, ask, time, &made)).await {
                Ok(result) => result,
                Err(_) => Err(Failed::final_(Fault::TimedOut, format!("no answer within {} s", time.as_secs_f64()))),
            }
        }
        .instrument(span.clone())
        .await;
        let attempts = made.load(Ordering::Relaxed);
        span.record("casebook.attempts", telemetry::count(attempts));
        meter::model_called(&meter::ModelCalled {
            provider: vendor,
            model: name,
            seconds: begun.elapsed().as_secs_f64(),
            result: result.as_ref().map(|a| (&a.tokens, a.cost_micros)).map_err(|failed| failed.fault.name()),
        });
        result.inspect(|answered| record(&span, &answered.version, &answered.tokens)).map_err(|failed| {
            telemetry::failed(&span, failed.fault.name());
            let message = format!("model {} ({}): {}", ask.model, wired.profile.provider.name(), failed.message);
            AskError { fault: failed.fault, message: secret::redact(&message, wired.key.as_ref()), attempts }
        })
    }
}

fn record(span: &tracing::Span, version: &str, tokens: &Tokens) {
    // The provider chooses this text, so only a plain name is recorded.
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:/@#".contains(&b);
    if version.len() <= 64 && version.bytes().all(plain) {
        span.record("gen_ai.response.model", version);
    }
    span.record("gen_ai.usage.input_tokens", telemetry::count(tokens.input));
    span.record("gen_ai.usage.output_tokens", telemetry::count(tokens.output));
    span.record("gen_ai.usage.cache_read.input_tokens", telemetry::count(tokens.cached));
}
