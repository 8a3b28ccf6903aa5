export { Agent, type AgentOptions, startAgent } from './agent.ts';
export { type AgentIdentity, agentHome, readIdentity, writeIdentity } from './identity.ts';
export { type Registration, registerAgent } from './register.ts';
