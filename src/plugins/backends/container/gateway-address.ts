/** Mount point of the gateway's socket in a container. */
export const GATEWAY_SOCKET = '/run/svc/gateway.sock';
/** Base URL of the gateway in a container. The runner sends requests for this URL to the mounted socket. */
export const GATEWAY_URL = 'http://gateway.localhost';

/** Environment variables that contain the gateway's addresses for code in a container. */
export const GATEWAY_ENV = { SVC_GATEWAY_URL: GATEWAY_URL, SVC_GATEWAY_SOCKET: GATEWAY_SOCKET };
