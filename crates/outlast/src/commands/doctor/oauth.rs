//! Checks of the OAuth issuer (M2): it is within reach, its keys can be used, and clients can sign in.

use outlast_http::oauth::{TokenVerifier, VerifierOptions};

use super::check::{CHECK_LIMIT, Check};
use crate::commands::serve::http::verifier_options;
use crate::config::Config;

/// Checks the issuer, if one is configured.
pub(super) async fn issuer(config: Option<&Config>) -> Option<Check> {
    let options = verifier_options(config?, VerifierOptions::REFETCH_AFTER)?;
    let issuer = options.issuer.clone();
    let audiences = options.audiences.join(", ");
    let verifier = match TokenVerifier::new(options) {
        Ok(verifier) => verifier,
        Err(error) => return Some(Check::fail(error.to_string(), "check the section [oauth]")),
    };
    let looked = async { tokio::join!(verifier.count_keys(), verifier.issuer_metadata()) };
    let Ok((keys, metadata)) = tokio::time::timeout(CHECK_LIMIT, looked).await else {
        let line = format!("{issuer} does not answer within {} s", CHECK_LIMIT.as_secs());
        return Some(Check::fail(line, "check the address and the proxy (`network.proxy`)"));
    };
    let keys = match keys {
        Ok(0) => {
            let line = format!("{issuer} publishes no key for RS256, PS256, ES256 or EdDSA");
            return Some(Check::fail(line, "let the issuer sign access tokens with one of these"));
        }
        Ok(keys) => keys,
        Err(why) => {
            let fix = "`oauth.issuer` must be exactly as in its metadata, slash included; `oauth.jwks_url` names the keys directly";
            return Some(Check::fail(why, fix));
        }
    };
    let metadata = match metadata {
        Ok(metadata) => metadata,
        Err(why) => {
            let line = format!(
                "keys of {issuer}: {keys}, but clients cannot find out how to sign in: {why}"
            );
            return Some(Check::warn(line, "publish the issuer's metadata (RFC 8414)"));
        }
    };
    let registration = match (
        metadata.client_id_metadata_document_supported,
        metadata.registration_endpoint.is_some(),
    ) {
        (true, _) => "clients identify themselves by metadata documents",
        (false, true) => "clients register themselves",
        (false, false) => "each client must be registered by hand",
    };
    let line = format!("{issuer}: keys: {keys}; {registration}; audience: {audiences}");
    let has_s256 = metadata.code_challenge_methods_supported.iter().any(|it| it == "S256");
    Some(match has_s256 {
        true => Check::pass(line),
        false => Check::warn(
            format!("{line}; its metadata does not offer S256, so MCP clients refuse to sign in"),
            "enable PKCE with S256 at the issuer",
        ),
    })
}
