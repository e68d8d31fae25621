# The image of Fairway: docker build --tag fairway:0.1.0 .
# The same with nginx, for --engine=nginx: docker build --target nginx --tag fairway:0.1.0-nginx .
# The files of the first are assembled by scripts/rootfs, which a test does as well (tests/deploy/image.rs).

# Debian is what the tests run on; glibc rather than a static program, for its resolver and for speed.
ARG RUST=1.95.0-bookworm

FROM rust:${RUST} AS build
# For aws-lc and for file capabilities.
RUN apt-get update && apt-get install -y --no-install-recommends cmake libcap2-bin && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# No git comes with it: --build-arg FAIRWAY_COMMIT=$(git rev-parse HEAD) says what is built.
ARG FAIRWAY_COMMIT
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    scripts/released && \
    strip --strip-debug -o /fairway target/release/fairway && \
    scripts/rootfs /fairway /rootfs && mkdir /program && \
    cp -a /rootfs/fairway /rootfs/nginx-ingress-controller /rootfs/wait-shutdown /rootfs/dbg /program

FROM debian:bookworm-slim AS nginx
LABEL org.opencontainers.image.title="Fairway with nginx" \
      org.opencontainers.image.description="An ingress controller for Kubernetes, with an nginx for raw snippets and ModSecurity" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates nginx \
      libnginx-mod-http-lua libnginx-mod-http-headers-more-filter libnginx-mod-http-brotli-filter \
      libnginx-mod-http-geoip2 libnginx-mod-http-modsecurity lua-resty-core lua-cjson modsecurity-crs && \
    rm -rf /var/lib/apt/lists/*
COPY --from=build /program/ /
USER 101:82
EXPOSE 80 443 8443 10254
CMD ["/nginx-ingress-controller", "--help"]

FROM scratch
LABEL org.opencontainers.image.title="Fairway" \
      org.opencontainers.image.description="An ingress controller for Kubernetes: the drop-in successor to ingress-nginx" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /rootfs/ /
USER 101:82
EXPOSE 80 443 8443 10254
# No entry point: manifests of ingress-nginx name the program as their first argument.
CMD ["/nginx-ingress-controller", "--help"]
