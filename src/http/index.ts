export * from './client.ts';
export * from './error-body.ts';
export * from './identity.ts';
export * from './mount.ts';
export * from './not-implemented.ts';
export * from './raw-error.ts';
export * from './server.ts';
export * from './standard-routes.ts';
