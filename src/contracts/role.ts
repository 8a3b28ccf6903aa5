import { z } from 'zod';
import { NamespaceId } from './ids.ts';

/** Roles in ascending order. Each role includes the rights of the roles before it. @spec docs/gateway.md "Roles" */
export const ROLES = ['viewer', 'editor', 'admin'] as const;
export const Role = z.enum(ROLES).meta({ id: 'Role' });
export type Role = z.infer<typeof Role>;

/** Returns whether `role` includes the rights of `needed`. */
export function includesRole(role: Role | null, needed: Role): boolean {
  return role !== null && ROLES.indexOf(role) >= ROLES.indexOf(needed);
}

/** Stands for all namespaces in a role. */
export const ALL_NAMESPACES = '*';
export const RoleNamespace = z.union([z.literal(ALL_NAMESPACES), NamespaceId]);
