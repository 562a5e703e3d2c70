//! The cryptography of TLS.

/// Makes ring the cryptography of TLS in this process, unless another is installed. Call it before the first HTTP
/// or NATS client is made: two libraries of the tree have different defaults and panic without a choice.
pub fn install() {
    // An error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
