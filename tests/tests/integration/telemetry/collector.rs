//! A collector: OTLP over HTTP on loopback, which keeps what it is sent.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{Metric, NumberDataPoint, metric, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// What was sent: path, a header that a collector may ask for, body.
type Sent = Arc<Mutex<Vec<(String, Option<String>, Bytes)>>>;

/// A collector that runs until it is dropped.
pub(super) struct Collector {
    runtime: Option<tokio::runtime::Runtime>,
    address: SocketAddr,
    sent: Sent,
}

impl Collector {
    pub(super) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let (address, sent) = (listener.local_addr().unwrap(), Sent::default());
        let keep = Arc::clone(&sent);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let keep = Arc::clone(&keep);
                let service = service_fn(move |request| take(Arc::clone(&keep), request));
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { runtime: Some(runtime), address, sent }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that was sent, as bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.sent.lock().unwrap().iter().flat_map(|(_, _, body)| body.to_vec()).collect()
    }

    /// The keys that came along.
    pub(super) fn keys(&self) -> Vec<Option<String>> {
        self.sent.lock().unwrap().iter().map(|(_, key, _)| key.clone()).collect()
    }

    fn of<M: Message + Default>(&self, path: &str) -> Vec<M> {
        let sent = self.sent.lock().unwrap();
        sent.iter().filter(|(at, ..)| at == path).map(|(_, _, body)| M::decode(body.clone()).unwrap()).collect()
    }

    /// Every span with the service that sent it.
    pub(super) fn spans(&self) -> Vec<(String, Span)> {
        let all = self.of::<ExportTraceServiceRequest>("/v1/traces");
        let of_resources = all.into_iter().flat_map(|request| request.resource_spans);
        of_resources
            .flat_map(|of| {
                let service = service(of.resource.as_ref());
                let spans = of.scope_spans.into_iter().flat_map(|scope| scope.spans);
                spans.map(|span| (service.clone(), span)).collect::<Vec<_>>()
            })
            .collect()
    }

    /// Every metric with the service that sent it, as it was sent last.
    pub(super) fn metrics(&self) -> Vec<(String, Metric)> {
        let all = self.of::<ExportMetricsServiceRequest>("/v1/metrics");
        let mut latest = std::collections::BTreeMap::new();
        for of in all.into_iter().flat_map(|request| request.resource_metrics) {
            let who =
                (service(of.resource.as_ref()), attribute(&of.resource.unwrap().attributes, "service.instance.id"));
            for metric in of.scope_metrics.into_iter().flat_map(|scope| scope.metrics) {
                latest.insert((who.clone(), metric.name.clone()), metric);
            }
        }
        latest.into_iter().map(|(((service, _), _), metric)| (service, metric)).collect()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn take(keep: Sent, request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let key = request.headers().get("x-collector-key").and_then(|v| v.to_str().ok()).map(str::to_owned);
    let protobuf = request.headers().get("content-type").is_some_and(|v| v == "application/x-protobuf");
    let path = request.uri().path().to_owned();
    let mut response = Response::new(Empty::new());
    match request.into_body().collect().await {
        Ok(body) if protobuf => keep.lock().unwrap().push((path, key, body.to_bytes())),
        _ => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    Ok(response)
}

fn service(resource: Option<&Resource>) -> String {
    attribute(&resource.unwrap().attributes, "service.name")
}

/// The value of an attribute as text; empty where it is not there.
pub(super) fn attribute(attributes: &[KeyValue], key: &str) -> String {
    let value = attributes.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.clone()?.value);
    match value {
        Some(any_value::Value::StringValue(text)) => text,
        Some(any_value::Value::IntValue(n)) => n.to_string(),
        Some(any_value::Value::BoolValue(b)) => b.to_string(),
        Some(other) => panic!("{key} is {other:?}"),
        None => String::new(),
    }
}

/// The points of a metric: the attributes of each, how often something was measured, and the sum.
pub(super) fn points(metric: &Metric) -> Vec<(Vec<KeyValue>, u64, f64)> {
    match metric.data.as_ref().unwrap() {
        metric::Data::Histogram(all) => {
            all.data_points.iter().map(|p| (p.attributes.clone(), p.count, p.sum.unwrap_or(0.0))).collect()
        }
        metric::Data::Sum(all) => {
            assert!(all.is_monotonic, "{}", metric.name);
            numbers(&all.data_points)
        }
        metric::Data::Gauge(all) => numbers(&all.data_points),
        other => panic!("{} is {other:?}", metric.name),
    }
}

fn numbers(points: &[NumberDataPoint]) -> Vec<(Vec<KeyValue>, u64, f64)> {
    let value = |v: &number_data_point::Value| match v {
        number_data_point::Value::AsInt(n) => *n as f64,
        number_data_point::Value::AsDouble(n) => *n,
    };
    points.iter().map(|p| (p.attributes.clone(), 1, p.value.as_ref().map_or(0.0, value))).collect()
}
