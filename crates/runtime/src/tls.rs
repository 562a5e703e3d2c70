/// Selects ring for TLS in this process, unless another provider is installed. Call it before creating an HTTP or NATS
/// client: two dependencies have different defaults and panic without a choice.
pub fn install() {
    // An error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
