/** Where the gateway's socket is mounted in a container. */
export const GATEWAY_SOCKET = '/run/svc/gateway.sock';
/** A name on loopback, as the gateway expects; the runner connects it to the socket. */
export const GATEWAY_URL = 'http://gateway.localhost';

/** The variables by which code in a container finds the gateway. */
export const GATEWAY_ENV = { SVC_GATEWAY_URL: GATEWAY_URL, SVC_GATEWAY_SOCKET: GATEWAY_SOCKET };
