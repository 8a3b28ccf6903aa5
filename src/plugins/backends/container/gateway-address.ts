/** Mount point of the gateway's socket in a container. */
export const GATEWAY_SOCKET = '/run/svc/gateway.sock';
/** A loopback name, as the gateway expects; the runner connects it to the socket. */
export const GATEWAY_URL = 'http://gateway.localhost';

/** Environment variables that tell code in a container how to reach the gateway. */
export const GATEWAY_ENV = { SVC_GATEWAY_URL: GATEWAY_URL, SVC_GATEWAY_SOCKET: GATEWAY_SOCKET };
