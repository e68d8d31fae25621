# The image of Fairway: docker build --tag fairway:0.1.0 .
# Its files are assembled by scripts/rootfs, which a test does as well (tests/deploy/image.rs).

# Debian is what the tests run on; glibc rather than a static program, for its resolver and for speed.
ARG RUST=1.95.0-trixie

FROM rust:${RUST} AS build
# For aws-lc and for file capabilities.
RUN apt-get update && apt-get install -y --no-install-recommends cmake libcap2-bin && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin fairway && \
    strip --strip-debug -o /fairway target/release/fairway && \
    scripts/rootfs /fairway /rootfs

FROM scratch
LABEL org.opencontainers.image.title="Fairway" \
      org.opencontainers.image.description="An ingress controller for Kubernetes: the drop-in successor to ingress-nginx" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /rootfs/ /
USER 101:82
EXPOSE 80 443 8443 10254
# No entry point: manifests of ingress-nginx name the program as their first argument.
CMD ["/nginx-ingress-controller", "--help"]
