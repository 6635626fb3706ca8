/* SPDX-License-Identifier: Apache-2.0
 *
 * What participants and end points announce about DDS Security.
 */
#pragma once

#include <string>

#include "versions.hpp"

namespace tb {

/* Protection of messages between participants, in the words of a governance document; empty if the participant has no
 * DDS Security. */
struct ParticipantProtection {
    std::string rtps, discovery, liveliness;
};

/* Protection of the messages of an end point; empty if its participant has no DDS Security. */
struct EndpointProtection {
    std::string metadata, data;
};

/* What the other side announces; empty too if this version of Fast DDS does not show it. */
ParticipantProtection announced(const ParticipantData &data);
EndpointProtection announced(const ReaderData &data);
EndpointProtection announced(const WriterData &data);

class Participant;
class Session;

/* DDS Security of the session as JSON: the plug-ins, and the protection that a matched participant announces, which
 * equals the own one because other participants do not match. `null` if the session has no DDS Security. */
std::string security(Session &session);

/* What DDS Security has to do with an end point that has found no other one; empty if it has nothing to do with it. */
std::string security_remark(const Participant &participant, bool secured);

} // namespace tb
